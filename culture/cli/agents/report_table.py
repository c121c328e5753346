"""Reports of agents as a table for people."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from culture.cli import output
from culture.ledger_views.states import display_state
from culture.protocol.vocabulary import AgentState

_HEADINGS = ("AGENT", "BACKEND", "STATE", "SINCE", "TASK", "TOKENS", "USD", "CONTEXT", "UNREAD", "LAST MESSAGE")
_TOLD = "TOLD"
"""Of agents elsewhere it is not known when they last heard something, but when they last told of themselves."""
_NUMBERS = frozenset({"TOKENS", "USD", "CONTEXT", "UNREAD"})
_LONGEST_TASK = 40
_NOTHING = "-"
_WHY = {"unvouched": "nobody vouches for them", "people": "only people wake it", "loop": "held by the loop guard"}


def table(reports: Sequence[Mapping[str, Any]], now: datetime) -> str:
    """One line per agent, and below it what a person has to look after."""
    is_told = any("told" in report for report in reports)
    headings = (*_HEADINGS[:-1], _TOLD) if is_told else _HEADINGS
    rows = [headings, *(tuple(map(plain, _row(report, now))) for report in reports)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    remarks = [
        remark
        for report in reports
        for remark in (_remark(report), *_on_disk(report), *_on_held(report), *_on_alerts(report, now))
        if remark
    ]
    return "\n".join([*lines, *(["", *map(plain, remarks)] if remarks else [])])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, _HEADINGS, strict=True)
    return "  ".join(
        cell.rjust(width) if heading in _NUMBERS else cell.ljust(width) for cell, width, heading in cells
    ).rstrip()


def _row(report: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    last, context = report["last_message"], report["context_pct"]
    stale = f" ({report['stale']} stale)" if report["stale"] else ""
    return (
        report["nick"],
        report["backend"],
        _state(report),
        shown_time(report["since"], now),
        plain(report["task"] or _NOTHING, _LONGEST_TASK),
        _told(report, report["tokens_today"], ","),
        _told(report, report["cost_usd_today"], ".2f"),
        _NOTHING if context is None else f"{context:.0f} %",
        f"{report['unread']}{stale}",
        shown_time(report.get("told") or (last["at"] if last else None), now),
    )


def _told(report: Mapping[str, Any], figure: float, form: str) -> str:
    """A figure; nothing where turns were taken and their program has told none."""
    return _NOTHING if report.get("turns_today") and not figure else format(figure, form)


def _state(report: Mapping[str, Any]) -> str:
    state = str(report["state"])
    shown = display_state(state, stood_down=bool(report.get("stood_down")), held=report.get("held") or 0)
    if state in list(AgentState) and not report["connected"]:
        return f"{shown}, offline"
    if then := report.get("next"):
        return f"{state}, then {then}"
    return f"{shown}, quiet" if report["quiet"] else shown


def _remark(report: Mapping[str, Any]) -> str:
    nick = report["nick"]
    match report["state"]:
        case AgentState.PARKED:
            return (
                f"{nick} crashed too often and is parked: look at `culture logs {nick}`, then `culture resume {nick}`."
            )
        case AgentState.ASKING:
            return f"{nick} waits for an answer to a question: `culture questions {nick}`."
        case AgentState.IDLE if report.get("stood_down"):
            return f"{nick} is standing down, only people wake it: say `@{nick} go on` to end that."
        case AgentState.PAUSED:
            return f"{nick} is paused: `culture resume {nick}`."
        case "stopped" if report["unread"]:
            return f"{nick} has mail and does not run: `culture start {nick}`."
        case "not answering":
            return f"{nick}: {report['why']}; `culture restart {nick}` helps."
        case "starting":
            return f"{nick} is not ready yet: `culture logs {nick}`."
    return ""


def _on_disk(report: Mapping[str, Any]) -> Iterator[str]:
    """A daemon that can store nothing, and so does nothing."""
    if why := report.get("disk"):
        yield f"{report['nick']} cannot write to its disk: {plain(why)}. Nothing is lost; make room, and it goes on."


def _on_held(report: Mapping[str, Any]) -> Iterator[str]:
    """Messages that wait for a person's word: how many, of whom and why."""
    nick, held = report["nick"], report.get("held")
    if not held:
        return
    of = [f"{each['nick']} ({each['count']}, {_WHY.get(each['why'], each['why'])})" for each in report["held_by"]]
    dropped = f"; {report['held_dropped']} older ones were dropped" if report.get("held_dropped") else ""
    whose = f": {', '.join(of)}" if of else ""
    messages = "1 held message" if held == 1 else f"{held} held messages"
    yield f"{nick} has {messages}{whose}{dropped}. To release those of a sender, say `@{nick} go on NICK`."


def _on_alerts(report: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What became of alerts that did not reach the web; every one of them was told in the channel."""
    nick, webhook = report["nick"], report.get("webhook") or {}
    if webhook.get("failures"):
        at, why = shown_time(webhook["at"], now), plain(webhook["last_failure"])
        yield f"{nick}: alerts that were not posted: {webhook['failures']}, the last at {at}: {why}."
    if webhook.get("unknown"):
        yield f"{nick}: alerts that may have been posted or not: {webhook['unknown']}; look at `culture logs {nick}`."


def shown_time(moment: str | None, now: datetime) -> str:
    """The time of a moment today, the date of any other, in the machine's own time."""
    if moment is None:
        return _NOTHING
    at = datetime.fromisoformat(moment).astimezone(now.tzinfo)
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def plain(text: str, longest: int | None = None) -> str:
    """Somebody's words in one line that does nothing to a terminal."""
    line = output.shown(text).replace("\n", " ").replace("\t", " ")
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"
