"""Build the options of the Claude Agent SDK from an agent's setup, with our instructions."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import CanUseTool, EffortLevel, HookEvent, McpServerConfig, PermissionMode, SdkPluginConfig

from culture.clients.claude import detect
from culture.clients.shared import mcp
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.instructions import SHORT_CONTEXT, joined
from culture.clients.shared.options import check_directory, chosen
from culture.clients.shared.programs import installing
from culture.clients.shared.sandbox.bubblewrap import Sandbox
from culture.clients.shared.turn import RunnerSetup

INSTRUCTIONS = f"""\
# Think at length when it is worth it

Ordinary work needs ordinary thought. Use extended thinking for planning, for a bug that does not give way, and for \
decisions about architecture, or when a whisper says [THINK_DEEPER]. Go back to ordinary thought afterwards.

{SHORT_CONTEXT}"""


def mcp_servers(setting: object, environment: Mapping[str, str]) -> dict[str, McpServerConfig]:
    """Return the settings of the MCP servers by name, with ``${VARIABLE}`` not filled in.

    ``setting``: the value of ``mcp_servers`` in agents.yaml. The result is passed on the command line, which anybody
    can read; Claude Code fills in the variables itself.
    """
    return {server.name: _config(server) for server in mcp.mcp_servers(setting, environment)}


def _config(server: mcp.McpServer) -> McpServerConfig:
    if server.kind == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    if server.kind == "sse":
        return {"type": "sse", "url": server.url, "headers": dict(server.headers)}
    return {"type": "http", "url": server.url, "headers": dict(server.headers)}


BYPASS: PermissionMode = "bypassPermissions"
NEVER_ASKS: frozenset[PermissionMode] = frozenset({BYPASS, "dontAsk"})
EFFORTS: Mapping[str, EffortLevel] = {level: level for level in get_args(EffortLevel)} | {"ultrathink": "max"}
NO_THINKING = frozenset({"off", "none", "disabled"})
DEEPEST: EffortLevel = "max"
# An image in a tool result is one line of several megabytes; a longer line would end the session.
LONGEST_LINE = 64 * 1024 * 1024
# Makes the program report when it works without a prompt of ours.
STATE_EVENTS = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"


def effort(thinking: str) -> EffortLevel | None:
    """Return the reasoning effort for a ``thinking`` setting; None turns thinking off.

    ``WrongConfiguration`` if the setting is unknown.
    """
    if thinking in NO_THINKING:
        return None
    if thinking not in EFFORTS:
        raise WrongConfiguration(f"thinking: {thinking!r} is none of {', '.join([*EFFORTS, *sorted(NO_THINKING)])}")
    return EFFORTS[thinking]


def permission_mode(setup: RunnerSetup) -> PermissionMode:
    """Return Claude Code's permission mode; ``bypassPermissions`` by default.

    ``WrongConfiguration`` for root, who cannot use that mode outside of a sandbox.
    """
    modes: tuple[PermissionMode, ...] = get_args(PermissionMode)
    mode = chosen(setup.options, "permission_mode", modes, BYPASS)
    contained = setup.sandbox.needs.set if setup.sandbox is not None else {}
    return _fit_for_this_user(mode, {**os.environ, **setup.environment, **contained})


def _fit_for_this_user(mode: PermissionMode, environment: Mapping[str, str]) -> PermissionMode:
    if mode == BYPASS and os.geteuid() == 0 and environment.get("IS_SANDBOX") != "1":
        raise WrongConfiguration(
            f"Claude Code refuses permission_mode {BYPASS} as root: run the agent as a normal user, "
            "or set permission_mode: dontAsk and name what it may use in allowed_tools, as in [Bash, Read, Edit]"
        )
    return mode


def allowed_tools(setup: RunnerSetup) -> list[str]:
    """Return the names of the tools that Claude Code may use without permission."""
    tools = setup.options.get("allowed_tools") or ()
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, str) for tool in tools):
        raise WrongConfiguration(f"allowed_tools: {tools!r} is no list of names of tools")
    return list(tools)


def options(
    setup: RunnerSetup,
    *,
    environment: Mapping[str, str],
    fresh: str | None = None,
    note: str = "",
    hooks: dict[HookEvent, list[HookMatcher]],
    stderr: Callable[[str], None],
    asks: CanUseTool | None = None,
) -> ClaudeAgentOptions:
    """Return the SDK options to start a session with the id ``fresh``, or to resume a session.

    Without ``fresh``, the session named in the setup is resumed. ``note`` is appended to the instructions; ``stderr``
    is called with each line that the program prints there; ``asks`` decides permissions.
    """
    check_directory(setup.directory)
    level = effort(setup.thinking)
    return ClaudeAgentOptions(
        system_prompt={"type": "preset", "preset": "claude_code", "append": appended(setup.instructions, note)},
        cwd=setup.directory,
        model=setup.model,
        effort=level,
        thinking=None if level else {"type": "disabled"},
        permission_mode=permission_mode(setup),
        allowed_tools=allowed_tools(setup),
        mcp_servers=mcp_servers(setup.options.get("mcp_servers"), {**os.environ, **environment}),
        setting_sources=["user", "project", "local"],
        plugins=plugins(setup, environment),
        env={**environment, STATE_EVENTS: "1"},
        session_id=fresh,
        resume=None if fresh else setup.resume,
        include_partial_messages=True,
        max_buffer_size=LONGEST_LINE,
        hooks=hooks,
        stderr=stderr,
        can_use_tool=asks if permission_mode(setup) not in NEVER_ASKS else None,
        cli_path=launcher(setup.sandbox, environment),
    )


def plugins(setup: RunnerSetup, environment: Mapping[str, str]) -> list[SdkPluginConfig]:
    """Return the IRC instructions as a local plugin; empty if they are already installed."""
    contained = setup.sandbox.needs.set if setup.sandbox is not None else {}
    variables = {**os.environ, **environment, **contained}
    if detect.installed_skill(variables, setup.directory) is not None or not detect.PLUGIN.is_dir():
        return []
    return [{"type": "local", "path": str(detect.PLUGIN)}]


def launcher(sandbox: Sandbox | None, environment: Mapping[str, str]) -> Path | None:
    """Return the path of a script that starts Claude Code in the sandbox; None without one."""
    if sandbox is None:
        return None
    program = detect.program()
    if program is None:
        raise WrongConfiguration(f"Claude Code is not installed: {installing('claude')}")
    return sandbox.launcher(program, environment)


def appended(instructions: str, note: str = "") -> str:
    """Return the text appended to Claude's system prompt.

    It has the agent's instructions, those of culture for Claude, and ``note``.
    """
    return joined(instructions, INSTRUCTIONS, note)
