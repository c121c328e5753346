"""The agent program: prompts as JSON lines on stdin, output as JSON lines on stdout.

Its session is a file of JSON lines with the prompts and answers, and can be resumed.

In: ``prompt`` (id, text, deeper), ``command`` (id, name: compact or clear), ``interrupt`` (id).
The program ends at the end of its input.
Out: ``ready`` (session, count), ``text``, ``thinking``, ``tool_use``, ``tool_result``, ``usage`` (tokens, cost_usd: of
the turn so far), and ``turn_end`` (id, session, text, error, full, interrupted, tools, compacted, usage) for every
prompt and command.
"""

import argparse
import json
import os
import queue
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from culture.clients.scripted.execute import ApiError, Breaking, BrokenOff, Performance
from culture.clients.scripted.playbook import BUILT_IN, Playbook, read
from culture.clients.scripted.prompt import message_at, without_events
from culture.clients.shared.errors import WrongConfiguration

FOLDER = ".scripted"
WINDOW = 100_000
"""Size of the simulated context window, in tokens."""
_COMPACTED_SHARE = 0.1
_LETTERS_PER_TOKEN = 4
_ID = re.compile(r"[0-9a-f]{32}")
WRONG_CONFIGURATION = 78
_EVERY_TURN = sys.maxsize


@dataclass
class ScriptedSession:
    """The conversation of a scripted agent: counts prompts and tokens.

    Every change is written to the session's file before it counts.
    """

    folder: Path
    id: str = field(default_factory=lambda: os.urandom(16).hex())
    count: int = 0
    """Number of prompts so far."""
    tokens: int = 0
    """Tokens in the simulated context."""
    stated_pct: float | None = None
    """Context percentage that the playbook set, if any."""

    @classmethod
    def resumed(cls, folder: Path, session_id: str) -> "ScriptedSession | None":
        """Return the session with this id, read from its file; None if it does not exist."""
        if not _ID.fullmatch(session_id) or not (folder / f"{session_id}.jsonl").is_file():
            return None
        session = cls(folder, session_id)
        *lines, torn = (folder / f"{session_id}.jsonl").read_text(encoding="utf-8").split("\n")
        for line in lines:
            session._remember(line)
        if torn:
            # A kill cut off the last line; end it.
            session._append("")
        return session

    @classmethod
    def begun(cls, folder: Path) -> "ScriptedSession":
        """Start a new session, write its file, and return it."""
        session = cls(folder)
        session._write({"tokens": 0})
        return session

    @property
    def context_pct(self) -> float:
        """Return how much of the context is in use, in %, as stated by a step or as counted."""
        return self.stated_pct if self.stated_pct is not None else round(min(100.0, 100 * self.tokens / WINDOW), 1)

    def prompted(self, text: str) -> None:
        """Record a prompt in the session's file."""
        self._write({"prompt": text, "tokens": len(text) // _LETTERS_PER_TOKEN + 1})

    def answered(self, text: str, stated_pct: float | None) -> int:
        """Record an answer in the session's file; returns its tokens.

        ``stated_pct``: how full the context is, in %, if a step says so.
        """
        tokens = len(text) // _LETTERS_PER_TOKEN + 1
        self._write({"answer": text, "tokens": tokens, "context_pct": stated_pct})
        return tokens

    def compact(self) -> None:
        """Record that the context was shortened to a tenth."""
        self._write({"compacted": int(self.tokens * _COMPACTED_SHARE)})

    def cleared(self) -> "ScriptedSession":
        """Start a new session in the same folder, and return it."""
        return ScriptedSession.begun(self.folder)

    def _write(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # Prompts are private and no part of the project: keep them out of git.
        ignored = self.folder / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")
        self._append(line)
        self._remember(line)

    def _append(self, line: str) -> None:
        descriptor = os.open(self.folder / f"{self.id}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def _remember(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            # A line that a kill cut off.
            return
        if "compacted" in entry:
            self.tokens, self.stated_pct = entry["compacted"], None
            return
        self.count += "prompt" in entry
        self.tokens += entry["tokens"]
        stated = entry.get("context_pct")
        self.stated_pct = self.stated_pct if stated is None else stated


class ScriptedAgent:
    """The agent without a model: takes one turn at a time, while a thread reads its input."""

    def __init__(self, playbook: Playbook, session: ScriptedSession, nick: str, thinking: str) -> None:
        self._playbook = playbook
        self._session = session
        self._nick = nick
        self._thinking = thinking
        self._breaking = Breaking()
        self._waiting: queue.SimpleQueue[dict[str, object] | None] = queue.SimpleQueue()

    def work(self) -> None:
        """Handle prompts and commands until the input ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        tell({"type": "ready", "session": self._session.id, "count": self._session.count})
        while (request := self._waiting.get()) is not None:
            number = int(str(request["id"]))
            self._breaking.begin(number)
            end = self._command(str(request["name"])) if request["type"] == "command" else self._turn(request)
            tell({"type": "turn_end", "id": number, "session": self._session.id, **end})

    def _listen(self) -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request["type"] == "interrupt":
                self._breaking.break_off(request["id"])
            else:
                self._waiting.put(request)
        self._breaking.break_off(_EVERY_TURN)
        self._waiting.put(None)

    def _command(self, name: str) -> dict[str, object]:
        if name == "clear":
            self._session = self._session.cleared()
        else:
            self._session.compact()
        return {"usage": {"context_pct": self._session.context_pct}, "compacted": name == "compact"}

    def _turn(self, request: dict[str, object]) -> dict[str, object]:
        prompt = str(request["text"])
        before = self._session.tokens
        self._session.prompted(prompt)
        prompt = without_events(prompt)
        match, steps = self._playbook.chosen(prompt)
        performance = Performance(tell, self._breaking, self._values(prompt, match, bool(request.get("deeper"))))
        end: dict[str, object] = {}
        try:
            performance.perform(steps)
        except BrokenOff:
            end["interrupted"] = True
        except ApiError as error:
            end.update(error=str(error), full=error.full)
        except OSError as error:
            end["error"] = f"the playbook cannot be followed: {error}"
        said = "" if end else performance.text
        self._session.answered(said, performance.usage.context_pct)
        stated = performance.usage
        usage = {
            "tokens": self._session.tokens - before if stated.tokens is None else stated.tokens,
            "cost_usd": stated.cost_usd or 0.0,
            "context_pct": self._session.context_pct,
        }
        return {**end, "text": said, "tools": performance.tools, "usage": usage}

    def _values(self, prompt: str, match: re.Match[str] | None, deeper: bool) -> dict[str, str]:
        message = message_at(prompt, match.start() if match else None, self._nick)
        groups = {str(number): text or "" for number, text in enumerate(match.groups(), 1)} if match else {}
        names = {name: text or "" for name, text in match.groupdict().items()} if match else {}
        return {
            "sender": message.sender,
            "text": message.text,
            "target": message.target,
            "prompt": prompt,
            "nick": self._nick,
            "server": self._nick.partition("-")[0],
            "count": str(self._session.count),
            "session": self._session.id,
            "output": "",
            "code": "",
            "round": "",
            "time": time.strftime("%H:%M:%S UTC", time.gmtime()),
            "thinking": "deeper" if deeper else self._thinking,
            **groups,
            **names,
        }


def tell(event: dict[str, object]) -> None:
    """Write an event, such as a text or the end of a turn, as one JSON line to standard output."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the agent program: read the playbook, start or resume the session, handle prompts."""
    arguments = argparse.ArgumentParser(prog="culture.clients.scripted.agent")
    arguments.add_argument("--playbook", type=Path, default=BUILT_IN)
    arguments.add_argument("--resume", metavar="SESSION")
    arguments.add_argument("--thinking", default="medium")
    given = arguments.parse_args()
    try:
        playbook = read(given.playbook)
    except WrongConfiguration as error:
        print(error, file=sys.stderr)
        sys.exit(WRONG_CONFIGURATION)
    folder = Path.cwd() / FOLDER
    session = ScriptedSession.resumed(folder, given.resume) if given.resume else None
    agent = ScriptedAgent(
        playbook, session or ScriptedSession.begun(folder), os.environ.get("CULTURE_NICK", ""), given.thinking
    )
    try:
        agent.work()
    except BrokenPipeError:
        # The reader is gone: exit without flushing the buffer.
        os._exit(0)


if __name__ == "__main__":
    main()
