"""``culture status``: what the agents are doing; ``culture logs``: what a daemon printed."""

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Annotated, Any, BinaryIO

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.agents.agent_report import STOPPED, report
from culture.cli.agents.select_agents import AgentsFile, Nick, fail_unknown_agent, load, resolve_nick, select_nicks
from culture.cli.agents.sudo import report_as_owner
from culture.cli.output import as_json as in_json
from culture.cli.output import fail, one_line
from culture.clients.shared import pidfile
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig
from culture.ledger_views.states import display_state
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, Exit

_AT_ONCE = 16
_UNKNOWN = "?"


@open_to_agents
def status(
    nick: Annotated[
        str | None, typer.Argument(metavar="NICK", show_default=False, help="Show only this agent.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all fields as JSON.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--all", help="The agents of the whole mesh, as its ledger has them.")
    ] = False,
    config: AgentsFile = None,
) -> None:
    """Show what the agents are doing, and what waits for them.

    This asks the daemons, not the models: it costs nothing, and nothing appears in a channel. With a NICK the exit
    code is 1 when that agent does not run.
    """
    reports = _everywhere(nick) if everywhere else _reports(load(config), nick)
    if as_json:
        typer.echo(in_json(reports if nick is None else reports[0]))
    elif reports:
        typer.echo(render_table(reports, datetime.now().astimezone()))
    else:
        typer.echo("There are no agents. Add one with `culture agents add <name>`.")
    if nick is not None and reports[0]["state"] == STOPPED:
        raise typer.Exit(Exit.FAILED)


def _everywhere(nick: str | None) -> list[dict[str, Any]]:
    from culture.cli.agents import agent_report, irc_session

    reports = irc_session.run(agent_report.mesh_reports(irc_session.current_person(None)))
    if nick is None:
        return reports
    [name] = select_nicks([each["nick"] for each in reports], [nick], everyone=False)
    return [each for each in reports if each["nick"] == name]


def _reports(settings: AgentsConfig, nick: str | None) -> list[dict[str, Any]]:
    """Return the status of the agents of agents.yaml, and of other agents that still run.

    ``nick``: the only agent to report on, None for all.
    """
    agents = {agent.nick: agent for agent in settings.agents}
    names = list(dict.fromkeys([*agents, *pidfile.all_running()]))
    if nick is not None:
        names = select_nicks(names, [nick], everyone=False)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda name: _report(name, agents.get(name)), names))


def _report(nick: str, agent: AgentConfig | None) -> dict[str, Any]:
    if agent is None:
        return report(nick, _UNKNOWN)
    theirs = report_as_owner(agent) if agent.user is not None else None
    return theirs or report(nick, agent.agent, str(agent.directory))


_HEADINGS = ("AGENT", "BACKEND", "STATE", "SINCE", "TASK", "TOKENS", "USD", "CONTEXT", "UNREAD", "LAST MESSAGE")
_TOLD = "TOLD"
"""Heading for agents elsewhere: when they last published their state."""
_NUMBERS = frozenset({"TOKENS", "USD", "CONTEXT", "UNREAD"})
_LONGEST_TASK = 40
_NOTHING = "-"
_WHY = {"unvouched": "nobody vouches for them", "people": "only people wake it", "loop": "held by the loop guard"}


def render_table(reports: Sequence[Mapping[str, Any]], now: datetime) -> str:
    """Return the status of agents as a table, with remarks below on what a person should do."""
    is_told = any("told" in report for report in reports)
    headings = (*_HEADINGS[:-1], _TOLD) if is_told else _HEADINGS
    rows = [headings, *(tuple(map(one_line, _row(report, now))) for report in reports)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    remarks = [
        remark
        for report in reports
        for remark in (_remark(report), *_disk_remark(report), *_held_remark(report), *_alert_remarks(report, now))
        if remark
    ]
    return "\n".join([*lines, *(["", *map(one_line, remarks)] if remarks else [])])


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
        format_time(report["since"], now),
        one_line(report["task"] or _NOTHING, _LONGEST_TASK),
        _figure(report, report["tokens_today"], ","),
        _figure(report, report["cost_usd_today"], ".2f"),
        _NOTHING if context is None else f"{context:.0f} %",
        f"{report['unread']}{stale}",
        format_time(report.get("told") or (last["at"] if last else None), now),
    )


def _figure(report: Mapping[str, Any], figure: float, form: str) -> str:
    """Format a number in an agent's status by the format string ``form``.

    The result is a dash if the number is 0 although the agent took turns: then its program reports no usage.
    """
    return _NOTHING if report.get("turns_today") and not figure else format(figure, form)


def _state(report: Mapping[str, Any]) -> str:
    state = str(report["state"])
    text = display_state(state, stood_down=bool(report.get("stood_down")), held=report.get("held") or 0)
    if state in list(AgentState) and not report["connected"]:
        return f"{text}, offline"
    if then := report.get("next"):
        return f"{state}, then {then}"
    return f"{text}, quiet" if report["quiet"] else text


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


def _disk_remark(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a remark if an agent's daemon has stopped work because it cannot write to its disk."""
    if why := report.get("disk"):
        yield f"{report['nick']} cannot write to its disk: {one_line(why)}. Nothing is lost; make room, and it goes on."


def _held_remark(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a remark if an agent has messages that wait for a person's release.

    It says how many there are, from whom, and why.
    """
    nick, number = report["nick"], report.get("held")
    if not number:
        return
    of = [f"{each['nick']} ({each['count']}, {_WHY.get(each['why'], each['why'])})" for each in report["held_by"]]
    dropped = f"; {report['held_dropped']} older ones were dropped" if report.get("held_dropped") else ""
    whose = f": {', '.join(of)}" if of else ""
    messages = "1 held message" if number == 1 else f"{number} held messages"
    yield f"{nick} has {messages}{whose}{dropped}. To release those of a sender, say `@{nick} go on NICK`."


def _alert_remarks(report: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yield remarks on an agent's alerts that did not, or may not have, reached the webhook."""
    nick, webhook = report["nick"], report.get("webhook") or {}
    if webhook.get("failures"):
        at, why = format_time(webhook["at"], now), one_line(webhook["last_failure"])
        yield f"{nick}: alerts that were not posted: {webhook['failures']}, the last at {at}: {why}."
    if webhook.get("unknown"):
        yield f"{nick}: alerts that may have been posted or not: {webhook['unknown']}; look at `culture logs {nick}`."


def format_time(moment: str | None, now: datetime) -> str:
    """Format a time (ISO 8601) in local time, without the date if it is today; None as a dash."""
    if moment is None:
        return _NOTHING
    at = datetime.fromisoformat(moment).astimezone(now.tzinfo)
    return at.strftime("%H:%M:%S" if at.date() == now.date() else "%Y-%m-%d %H:%M")


STEP = 0.2


@open_to_agents
def logs(
    nick: Nick,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Keep printing new lines until Ctrl-C.")] = False,
    number: Annotated[
        int, typer.Option("-n", "--lines", min=0, metavar="N", help="Number of last lines to print.")
    ] = 50,
) -> None:
    """Show the log of an agent that runs in the background.

    Under systemd, use the journal: journalctl --user -u culture@<nick>.
    """
    if not nick or "/" in nick:
        fail(f"{nick!r} is no nick")
    nick = resolve_nick(nick)
    file = paths.log_file(nick)
    try:
        with file.open("rb") as text:
            for line in deque(text, maxlen=number):
                _show(line)
            if follow:
                _follow(text)
    except FileNotFoundError:
        nicks = [agent.nick for agent in load().agents]
        if fold(nick) not in map(fold, nicks):
            fail_unknown_agent(nick, nicks)
        fail(f"there is no {file}: {nick} was never started in the background here. `culture start {nick}` does that")
    except KeyboardInterrupt:
        pass


def _follow(text: BinaryIO) -> None:
    while True:
        line = text.readline()
        if line:
            _show(line)
        elif os.fstat(text.fileno()).st_size < text.tell():
            # The file was rotated.
            text.seek(0)
        else:
            time.sleep(STEP)


def _show(line: bytes) -> None:
    # Agents write into it, and quote others.
    typer.echo(output.clean(line.decode("utf-8", "replace")), nl=False)
