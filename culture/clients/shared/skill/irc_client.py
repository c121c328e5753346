"""The agent's command line: ``python3 -m culture.clients.shared.skill.irc_client <command>``."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from culture.clients.shared.ipc import Whisper
from culture.clients.shared.skill import shown
from culture.clients.shared.skill.call import PATIENCE, CallFailed, NoNick, call, own_nick, patience_for
from culture.clients.shared.skill.directory import NoDirectory, instructions
from culture.protocol.vocabulary import Exit

AGAIN = "ask-again"
OUTCOMES = {
    "ANSWERED": Exit.DONE,
    "TIMED_OUT": Exit.TIMED_OUT,
    "DENIED": Exit.DENIED,
    "ABORTED": Exit.ABORTED,
    "INTERROGATED": Exit.FAILED,
    "ASKED": Exit.ASKED,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # Whatever the locale says: IRC is UTF-8.
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    options = _parser().parse_args(_with_again(sys.argv[1:] if arguments is None else arguments))
    try:
        return int(options.run(options))
    except NoNick as missing:
        return _fail(str(missing), Exit.USAGE)
    except (CallFailed, NoDirectory) as failed:
        return _fail(str(failed), Exit.FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", Exit.ABORTED)
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        sys.stderr.close()
        return Exit.DONE


def _with_again(arguments: Sequence[str]) -> list[str]:
    """``ask --again q7`` names neither channel nor question, and so is a command of its own."""
    words = list(arguments)
    before = words[: words.index("--")] if "--" in words else words
    if "ask" in before and any(word == "--again" or word.startswith("--again=") for word in before):
        words[words.index("ask")] = AGAIN
    return words


def _fail(text: str, code: Exit) -> int:
    print(f"irc_client: {text}", file=sys.stderr)
    return code


def send(options: argparse.Namespace) -> int:
    """Say something."""
    sent = _call("irc_send", channel=options.channel, message=_text(options.message))
    return _print(options, sent, f"Sent to {options.channel}.")


def read(options: argparse.Namespace) -> int:
    """Show what is new."""
    found = _call("irc_read", channel=options.channel, limit=options.limit)
    return _print(options, found, shown.messages(found, options.channel))


def search(options: argparse.Namespace) -> int:
    """Show what was said about something."""
    text = _text(options.text)
    found = _call("irc_search", channel=options.channel, text=text, meaning=options.meaning, limit=options.limit)
    _print(options, found, shown.found(found, options.channel))
    return Exit.DONE if found else Exit.FAILED


def ask(options: argparse.Namespace) -> int:
    """Ask and wait."""
    answer = _call("irc_ask", patience_for(options.timeout), **_asked(options))
    outcome = answer["outcome"]
    note = shown.no_answer(answer) if outcome != "ANSWERED" else ""
    if note:
        print(f"irc_client: {note}", file=sys.stderr)
    if options.json or answer["text"] is not None:
        _print(options, answer, answer["text"])
    return OUTCOMES.get(outcome, Exit.FAILED)


def _asked(options: argparse.Namespace) -> dict[str, object]:
    """The fields of a question, or of a wait that is taken up again."""
    if "again" in options:
        return {"again": options.again, **({"reply": options.reply} if options.reply is not None else {})}
    fields: dict[str, object] = {"channel": options.channel, "question": _text(options.question)}
    if options.timeout is not None:
        fields["timeout"] = options.timeout
    if options.options is not None:
        fields["options"] = [word for word in options.options.replace(",", "/").split("/") if word]
    return fields


def join(options: argparse.Namespace) -> int:
    """Enter a channel."""
    return _print(options, _call("irc_join", channel=options.channel), f"In {options.channel}.")


def part(options: argparse.Namespace) -> int:
    """Leave a channel."""
    return _print(options, _call("irc_part", channel=options.channel), f"Left {options.channel}.")


def channels(options: argparse.Namespace) -> int:
    """Show the channels."""
    rows = _call("irc_channels")
    return _print(options, rows, shown.channels(rows))


def who(options: argparse.Namespace) -> int:
    """Show who is there."""
    rows = _call("irc_who", channel=options.target)
    return _print(options, rows, shown.people(rows, options.target))


def spawn(options: argparse.Namespace) -> int:
    """Have another agent of the team do a part of the work."""
    fields: dict[str, object] = {"role": options.role, "text": _text(options.text)}
    if options.timeout is not None:
        fields["timeout"] = options.timeout
    hired = _call("spawn_agent", patience_for(options.timeout), **fields)
    return _print(options, hired, shown.hired(hired))


def compact(options: argparse.Namespace) -> int:
    """Have the context shortened."""
    return _print(options, _call("compact"), "Your context will be compacted when this turn is over.")


def clear(options: argparse.Namespace) -> int:
    """Have the conversation forgotten."""
    return _print(options, _call("clear"), "Your conversation will be cleared when this turn is over.")


def status(options: argparse.Namespace) -> int:
    """Show what the daemon knows of the agent."""
    state = _call("status")
    return _print(options, state, shown.status(state))


def set_directory(options: argparse.Namespace) -> int:
    """Show another folder's instructions; no daemon is needed for that."""
    found = instructions(Path(options.path))
    return _print(options, found._asdict(), shown.directory(found))


def _call(type: str, patience: float | None = PATIENCE, **fields: object) -> Any:
    return call(own_nick(), type, fields, hear=_hear, patience=patience)


def _hear(whisper: Whisper) -> None:
    print(shown.whisper(whisper), file=sys.stderr, flush=True)


def _print(options: argparse.Namespace, data: object, text: str) -> int:
    print(json.dumps(data, ensure_ascii=False) if options.json else text, flush=True)
    return Exit.DONE


def _text(words: Sequence[str]) -> str:
    """The words of the command line, or standard input when there are none or only ``-``."""
    if words and list(words) != ["-"]:
        # Bytes that are no UTF-8 come from the shell as lone surrogates.
        return " ".join(words).encode("utf-8", "replace").decode()
    if sys.stdin.isatty():
        print("The message comes from standard input; end it with Ctrl-D.", file=sys.stderr)
    return sys.stdin.read().removesuffix("\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="irc_client", description="IRC through the daemon of CULTURE_NICK.", allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print the daemon's data as JSON")
    commands = parser.add_subparsers(metavar="command", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        added.set_defaults(run=run)
        return added

    one = command("send", send, "say something in a channel or to a nick")
    one.add_argument("channel")
    one.add_argument("message", nargs="*", help="none, or -: read from standard input, as it is")
    one = command("read", read, "what was said since the last time, oldest first")
    one.add_argument("channel")
    one.add_argument("limit", nargs="?", type=int, default=50)
    one = command("search", search, "what was ever said in a channel with these words; exit code 1: nothing")
    one.add_argument("channel")
    one.add_argument("--meaning", action="store_true", help="what comes nearest in meaning, the best first")
    one.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many messages: 20")
    one.add_argument("text", nargs="+", help="the words; -: read from standard input")
    one = command("ask", ask, "ask, and wait for the answer")
    one.add_argument("channel")
    one.add_argument("--timeout", type=float, metavar="N", help="seconds to wait")
    one.add_argument("--options", metavar="A/B", help="the words that answer it, such as yes/no/abort")
    one.add_argument("question", nargs="+", help="-: read from standard input")
    one = command(AGAIN, ask, "wait on for a question that you asked: the same as ask --again")
    one.set_defaults(timeout=None)
    one.add_argument("--again", metavar="ID", required=True, help="the question, such as q7")
    one.add_argument("--reply", metavar="TEXT", help="what you say to who asked back")
    command("join", join, "enter a channel").add_argument("channel")
    command("part", part, "leave a channel").add_argument("channel")
    command("channels", channels, "the channels you are in, with the number of members")
    command("who", who, "who is in a channel, or who a nick is").add_argument("target")
    one = command("spawn", spawn, "have your team hire another agent for a part of your task")
    one.add_argument("--timeout", type=float, metavar="N", help="seconds to wait")
    one.add_argument("role", help="such as implementer, test_runner or documenter")
    one.add_argument("text", nargs="*", help="what it shall do; none, or -: read from standard input")
    command("compact", compact, "have your context compacted")
    command("clear", clear, "have your conversation cleared; IRC is not affected")
    command("status", status, "what your daemon knows about you")
    command("set-directory", set_directory, "the instructions of another folder").add_argument("path")
    return parser


if __name__ == "__main__":
    sys.exit(main())
