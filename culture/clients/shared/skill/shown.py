"""How answers of the daemon look to whoever reads them."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from culture.clients.shared.ipc import Whisper
from culture.clients.shared.skill.directory import Instructions


def whisper(heard: Whisper) -> str:
    """A word of the supervisor."""
    return f"[SUPERVISOR/{heard.whisper_type}] {heard.message}"


def messages(read: Mapping[str, Any], channel: str) -> str:
    """What was said, oldest first; the further lines of a message are indented, so that none can pass for another."""
    rows = [_message(message) for message in read["messages"]] or [f"Nothing new in {channel}."]
    if read["remaining"]:
        rows.append(f"({read['remaining']} more: read {channel} again)")
    if withheld := read.get("withheld"):
        rows.append(f"({withheld} withheld: nobody here vouches for who said it; a person can release it)")
    return "\n".join(rows)


def found(rows: Iterable[Mapping[str, Any]], channel: str) -> str:
    """What a search found, in its order."""
    return "\n".join(map(_message, rows)) or f"Nothing was found in {channel}."


def _message(message: Mapping[str, Any]) -> str:
    first, *further = message["text"].splitlines() or [""]
    time = message["timestamp"].replace("T", " ")[:19]
    return "\n".join([f"[{time}] <{message['nick']}> {first}", *(f"    {line}" for line in further)])


def no_answer(end: Mapping[str, Any]) -> str:
    """Why a question has no answer, and what that means for the agent."""
    id = end["question"]
    match end["outcome"]:
        case "TIMED_OUT":
            then = {
                "pause": "; that is no permission: you are paused, so end your turn now",
                "deny": "; that counts as no: do not go ahead",
                "abort": "; the task is aborted: do not go ahead",
            }
            return "nobody answered in time" + then.get(end["action"] or "", "")
        case "INTERROGATED":
            who = f"{end['by']} ({end['class']})"
            return f'{who} asks back about {id}; answer and wait on with: irc_client ask --again {id} --reply "…"'
        case "ASKED":
            return f"not answered yet, asked as {id}: end your turn, the answer comes as your next prompt"
        case outcome:
            return f"{outcome.lower()}{' by ' + end['by'] if end['by'] else ''}"


def channels(rows: Iterable[Mapping[str, Any]]) -> str:
    """Channels and how many are there."""
    return "\n".join(f"{row['channel']}  {_counted(row['members'])}" for row in rows) or "In no channel."


def _counted(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"


def people(rows: Iterable[Mapping[str, Any]], target: str) -> str:
    """Table of users: nick, class, rank in the channel, account, and whether they are away."""
    return "\n".join(map(_person, rows)) or f"Nobody is in {target}."


def _rank(modes: str) -> str:
    """Rank of a member by its mode letters, or by the signs that `culture who` has for them."""
    if any(mode in modes for mode in "qao@"):
        return "operator"
    return "voice" if any(mode in modes for mode in "v+") else ""


def _person(row: Mapping[str, Any]) -> str:
    parts = [row["nick"], row["class"]]
    if rank := _rank(row["modes"]):
        parts.append(rank)
    if row["account"]:
        parts.append(f"account {row['account']}")
    if row["away"] is not None:
        parts.append(f"away: {row['away']}")
    return "  ".join(parts)


def hired(answer: Mapping[str, Any]) -> str:
    """Who helps from now on."""
    return f"{answer['nick']} is your {answer['role']}; you hear from it in your channel."


def status(state: Mapping[str, Any]) -> str:
    """What the agent is doing, one fact per line."""
    return "\n".join(f"{name}: {_fact(value)}" for name, value in state.items())


def _fact(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_fact(inner)}" for name, inner in value.items()) or "-"
        case list():
            return ", ".join(map(_fact, value)) or "-"
    return str(value)


def directory(found: Instructions) -> str:
    """A folder and the instructions that hold there."""
    go = f"Go there with: cd {shlex.quote(found.path)}"
    if found.text is None:
        return f"Working directory: {found.path} (no CLAUDE.md, no AGENTS.md). {go}"
    return f"Working directory: {found.path}. {go}\n\n{found.file}:\n\n{found.text}"
