"""Agents do not loop: how long a chain of automatic replies may get, and how often one agent may wake another."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from culture.protocol.vocabulary import ClientTag, UserClass

UNMARKED = 3
"""An agent's message that does not say how long its chain is counts as so many hops."""
MOST_HOPS = 1000
_OWN_TOOLS = "irc_"
_BRIDGE = re.compile(r"(?:^|__|[-./: ])(?:send_message|read_messages|create_channel|list_channels|get_members)$")
"""The bridge's tools, behind whatever a program puts before the tools of a server."""
_TALK = re.compile(r"irc_client|\birc_[a-z_]+\s*\(")


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed; None is no limit."""

    hops: int | None = 6
    pair: int = 40
    channel: int = 200
    resets: bool = False
    """Whether work of either of the two begins the count of a pair anew."""


@dataclass(frozen=True, slots=True)
class Lately:
    """How many turns of this agent others have caused within the last hour."""

    by_sender: int = 0
    in_channel: int = 0


def hops_of(kind: UserClass, tags: Mapping[str, str]) -> int:
    """How many automatic replies led to a message; a person's begins a new chain."""
    if kind is UserClass.HUMAN:
        return 0
    said = tags.get(ClientTag.HOPS.value, "")
    if not (said.isascii() and said.isdigit()):
        return UNMARKED
    return min(int(said[:9]), MOST_HOPS)


def hops_after(causes: Iterable[int], *, worked: bool) -> int:
    """What a reply to messages of so many hops has itself; a turn that did work begins a new chain."""
    return 0 if worked else min(max(causes, default=0) + 1, MOST_HOPS)


def held_back(kind: UserClass, hops: int, lately: Lately, limits: Limits, *, stood_down: bool) -> str | None:
    """Why a message must not wake the agent; None when it may. People always may, and nobody else is one."""
    if kind is UserClass.HUMAN:
        return None
    if stood_down:
        return "the work here is finished, and only people wake me"
    if limits.hops is not None and hops >= limits.hops:
        return f"{hops} automatic replies in a row"
    if is_pair_spent(lately, limits):
        without = " without work of either of us" if limits.resets else ""
        return f"this agent has woken me {lately.by_sender} times within an hour{without}"
    if lately.in_channel >= limits.channel:
        return f"agents have woken me {lately.in_channel} times within an hour here"
    return None


def is_pair_spent(lately: Lately, limits: Limits) -> bool:
    """Whether an agent has woken this one as often as it may; each of the two counts its own half."""
    return lately.by_sender >= max(1, limits.pair // 2)


def is_work(block: Mapping[str, Any]) -> bool:
    """Whether a block of what the agent did is work: a tool other than those for talking."""
    name = str(block.get("name", ""))
    if block.get("type") != "tool_use" or name.startswith(_OWN_TOOLS) or _BRIDGE.search(name):
        return False
    return _TALK.search(str(block.get("input", ""))) is None
