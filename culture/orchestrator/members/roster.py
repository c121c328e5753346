"""The members' agents.yaml and system prompts, generated from team.yaml and the state."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from culture.config.team import TeamConfig
from culture.lib.files import replace_file
from culture.orchestrator.journal.state import TeamMember, TeamState
from culture.orchestrator.prompts import IRC, load, on_wiki
from culture.orchestrator.repository.worktrees import branch_of
from culture.orchestrator.wiki_record import wiki_folder
from culture.protocol.vocabulary import WellKnownChannel

AGENTS, INSTRUCTIONS = "agents.yaml", "instructions"
# Chains of work are long, and limited by the task's budget; two members that only talk are held back.
_LOOPS = {"max_hops": "off", "pair_turns_per_hour": 20, "pair_turns_reset": True, "channel_turns_per_hour": 100_000}


class MemberConfigs:
    """Writes the files that the daemons of the team's members read when they start."""

    def __init__(self, config: TeamConfig, folder: Path, main: str, orchestrator: str, em: str) -> None:
        self._config = config
        self._folder = folder
        self._main = main
        self._orchestrator = orchestrator
        self._em = em

    @property
    def file(self) -> Path:
        """Return the path of the members' agents.yaml."""
        return self._folder / AGENTS

    def write(self, state: TeamState) -> None:
        """Write agents.yaml for all members of the team."""
        config = self._config
        data = {
            "server": config.server.model_dump(mode="json", exclude_none=True),
            "supervisor": config.supervisor.model_dump(mode="json", exclude_unset=True),
            "webhooks": config.webhooks.model_dump(mode="json", exclude_unset=True),
            **({"trust": config.trust.model_dump(mode="json", exclude_unset=True)} if config.trust else {}),
            "wake": config.wake,
            "people": list(config.pm),
            **({"sandbox": self._sandbox()} if config.sandbox.kind != "none" else {}),
            **_LOOPS,
            "agents": [self._agent_entry(member, state) for member in state.members.values()],
        }
        replace_file(self.file, json.dumps(data, ensure_ascii=False, indent=1))

    def placeholders(self, member: TeamMember, state: TeamState) -> dict[str, str]:
        """Return the values of placeholders such as ``{name}`` in a member's role prompt, by name."""
        config, task = self._config, state.tasks.get(member.task_id or "")
        return {
            "name": member.name,
            "nick": member.nick,
            "slug": config.slug,
            "em": self._em,
            "project_channel": config.project_channel,
            "standup_channel": config.standup_channel,
            "main_branch": self._main,
            "irc": IRC,
            "wiki": on_wiki(
                by_command=wiki_folder(config) is not None, by_tools="dev-wiki" in self._mcp_servers_of(member)
            ),
            **(
                {
                    "task": task.id,
                    "work_channel": task.channel,
                    "branch": branch_of(task.id),
                    "manager": task.manager or self._em,
                }
                if task
                else {}
            ),
        }

    def channels_of(self, role: str, task_channel: str | None) -> tuple[str, ...]:
        """Return the channels that a member with this role joins.

        ``task_channel``: the channel of its task; None only for the EM.
        """
        config = self._config
        if role == "em":
            return (config.project_channel, config.standup_channel, WellKnownChannel.ERRORS.value)
        assert task_channel is not None
        return (task_channel, config.standup_channel, config.project_channel) if role == "manager" else (task_channel,)

    def system_prompt(self, member: TeamMember, state: TeamState) -> str:
        """Return a member's role prompt, with the placeholders filled in."""
        return load(self._config.project_dir, member.role, self.placeholders(member, state))

    def write_instructions(self, member: TeamMember, state: TeamState) -> Path:
        """Write the role prompt of a member to a file and return its path."""
        file = self._folder / INSTRUCTIONS / f"{member.nick}.md"
        replace_file(file, self.system_prompt(member, state))
        return file

    def mcp_servers(self, nick: str) -> dict[str, dict[str, object]]:
        """Return a member's MCP servers by name, if configured: the wiki and the bridge.

        Each value is the server's entry in the format of MCP configuration files.
        """
        urls = {"dev-wiki": self._config.wiki_mcp_url, "irc-bridge": self._config.mcp_bridge_url}
        return {name: {"type": "http", "url": _as_nick(url, nick)} for name, url in urls.items() if url}

    def _mcp_servers_of(self, member: TeamMember) -> dict[str, dict[str, object]]:
        return self.mcp_servers(member.nick) if self._config.role(member.role).agent == "claude" else {}

    def _agent_entry(self, member: TeamMember, state: TeamState) -> dict[str, Any]:
        role = self._config.role(member.role)
        task = state.tasks.get(member.task_id or "")
        servers = self._mcp_servers_of(member)
        place, wiki = task.channel if task else self._config.standup_channel, wiki_folder(self._config)
        return {
            "nick": member.nick,
            "directory": member.worktree_path or str(self._config.project_dir),
            "channels": list(member.channels),
            "agent": role.agent,
            **({"model": role.model} if role.model else {}),
            **({"permission_mode": "bypassPermissions"} if role.agent == "claude" else {}),
            **({"mcp_servers": servers} if servers else {}),
            "instructions_file": str(self.write_instructions(member, state)),
            "team": {"orchestrator": self._orchestrator, "channel": place, **({"wiki": str(wiki)} if wiki else {})},
            **self._budget(),
            **role.options,
        }

    def _sandbox(self) -> Mapping[str, object]:
        """Return the sandbox settings of team.yaml, extended for the wiki and the MCP servers.

        The agents' programs can then reach both.
        """
        settings = self._config.sandbox.model_dump(mode="json", exclude_unset=True)
        urls = [urlsplit(url) for url in (self._config.wiki_mcp_url, self._config.mcp_bridge_url) if url]
        addresses = [f"{each.hostname}:{each.port}" for each in urls if each.hostname and each.port]
        wiki = wiki_folder(self._config)
        return {
            **settings,
            "hosts": [*settings.get("hosts", ()), *addresses],
            "write": [*settings.get("write", ()), *([str(wiki)] if wiki else [])],
        }

    def _budget(self) -> Mapping[str, object]:
        member = self._config.budget.member
        values = {"usd_total": member.usd, "tokens_total": member.tokens}
        limits = {name: value for name, value in values.items() if value is not None}
        return {"budget": limits} if limits else {}


def _as_nick(url: str, nick: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}nick={nick}"
