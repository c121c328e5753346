"""Hiring, prompting and retiring members; each act is journalled and can be repeated."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from uuid import uuid4

from culture.config import paths
from culture.config.team import ROLES
from culture.orchestrator import names
from culture.orchestrator.errors import MemberNotStarted, NoAnswer, NotHired, TeamFull
from culture.orchestrator.journal.state import Act, TeamMember, TeamTask
from culture.orchestrator.members.daemons import DaemonAway
from culture.orchestrator.names import one_at_a_time
from culture.orchestrator.team_context import TeamContext
from culture.protocol.names import fold

log = logging.getLogger(__name__)

IN_TURN = ("working", "asking")
"""States of an agent that is in a turn."""
_FOR_ANYBODY = ("wake-", "back-", "finished-", "gone-", "overlap-", "refused-", "nobody-", "still-")
"""Key prefixes of prompts that pass on to a member's successor."""


class MemberHiring:
    """Hires members of the team, gives them prompts, and retires them."""

    def __init__(self, context: TeamContext) -> None:
        self._context = context
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def hire(
        self, role: str, task: TeamTask | None, order: str, msgid: str = "", name: str | None = None
    ) -> TeamMember:
        """Hire a member and return it; ``NotHired`` if that fails.

        ``role``: such as ``implementer``; ``task``: the task it works on, None only for the EM; ``order``: its first
        prompt; ``msgid``: the message that asked for it; ``name``: its name, else the next free one.
        """
        nick = self.intend(role, task, order, msgid, name)
        return await self.settle(nick)

    def intend(
        self,
        role: str,
        task: TeamTask | None,
        order: str,
        msgid: str = "",
        name: str | None = None,
        instead: bool = False,
    ) -> str:
        """Record that a member is to be hired, and return its nick; from then on the name is in use.

        ``role``: such as ``implementer``; ``task``: the task it works on, None only for the EM; ``order``: its first
        prompt; ``msgid``: the message that asked for it; ``name``: its name, else the next free one. ``instead``
        marks the successor of another member, for which the limits of the team are not checked.
        """
        context = self._context
        if not instead:
            self._check_room(role, task)
        with one_at_a_time(context.folder):
            name = self._check_free(name) if name else self.next_name()
            nick = context.nick_of(name)
            context.store.intend(
                Act.HIRE,
                name=name,
                nick=nick,
                role=role,
                task=task.id if task else None,
                channels=list(context.roster.channels_of(role, task.channel if task else None)),
                worktree=task.worktree if task else str(context.config.project_dir),
                order=order,
                order_key=f"{nick}-{uuid4().hex}",
                **({"msgid": msgid} if msgid else {}),
            )
        return nick

    def next_name(self) -> str:
        """Return a name that no member on this machine ever had; ``NotHired`` if there is none.

        Mail, session and costs of a member are stored by name.
        """
        context = self._context
        used = [*context.store.state.names, context.config.em_name]
        used += names.names_of_other_teams(context.folder, context.server, past=True)
        try:
            return names.next_name(names.load(context.config.project_dir), used, self._has_traces)
        except names.NoNames as error:
            raise NotHired(str(error)) from None

    def _has_traces(self, name: str) -> bool:
        nick = self._context.nick_of(name)
        daemons = self._context.daemons
        return paths.inbox_file(nick).exists() or daemons.is_running(nick) or daemons.has_account(nick)

    def _check_free(self, name: str) -> str:
        if fold(name) in map(fold, names.names_of_other_teams(self._context.folder, self._context.server, past=True)):
            nick = self._context.nick_of(name)
            raise NotHired(f"{nick} is or was in another team: choose another em_name in team.yaml")
        return name

    async def settle(self, nick: str) -> TeamMember:
        """Start the daemon of a member recorded by ``intend``, and give the member its first prompt.

        This also resumes a hire that was interrupted at any point; ``NotHired`` if the member cannot be started.
        """
        async with self._turns[fold(nick)]:
            member = self._member(nick)
            try:
                await self._start(member)
                if not member.hired:
                    self._context.store.done(Act.HIRE, nick=nick)
                await self.give(nick, member.order_key, member.order, member.channels[0])
                await self.catch_up(nick)
            except (MemberNotStarted, NoAnswer) as wrong:
                await self._give_up(member, str(wrong))
                raise NotHired(str(wrong)) from None
            return self._member(nick)

    async def _give_up(self, member: TeamMember, why: str) -> None:
        """Undo the failed hire of a member: end its daemon and revoke its credentials.

        A member whose hire is complete is left as it is, for recovery. ``why``: the reason, for the journal.
        """
        context = self._context
        if member.hired:
            return
        await context.daemons.stop(member.nick)
        await context.daemons.dismiss(member.nick)
        context.store.failed(Act.HIRE, nick=member.nick, why=why)
        context.agents.pop(member.name, None)
        context.roster.write(context.store.state)

    async def give(self, nick: str, key: str, text: str, place: str | None = None, wrap_up: bool = False) -> None:
        """Give a member a prompt, unless its daemon already accepted one with this ``key``.

        ``NoAnswer`` if its daemon does not accept the prompt, which then stays pending for ``catch_up``. The closing
        text is posted to the channel ``place``. ``wrap_up``: the prompt tells the member that its context is nearly
        full.
        """
        self.promise(nick, key, text, place, wrap_up)
        if key in self._context.store.state.prompts:
            return
        if self._is_for_successor(nick, key):
            raise NoAnswer(f"{nick} is about to leave: the prompt is kept for its successor")
        await self._send_prompt(nick, key, text, place)
        self._context.store.done(Act.PROMPT, nick=nick, key=key, **({"wrap_up": True} if wrap_up else {}))

    async def _send_prompt(self, nick: str, key: str, text: str, place: str | None) -> None:
        """Send a prompt to a member's daemon, which ignores a ``key`` that it already has.

        The closing text goes to the channel ``place``, if not None. If the daemon refuses that channel, the prompt is
        sent without one.
        """
        call = self._context.daemons.call
        if place is None:
            await call(nick, "prompt", text=text, key=key)
            return
        try:
            await call(nick, "prompt", text=text, key=key, place=place)
        except DaemonAway:
            raise
        except NoAnswer as refused:
            log.warning("%s cannot answer in %s: %s", nick, place, refused)
            await call(nick, "prompt", text=text, key=key)

    def promise(
        self, nick: str, key: str, text: str, place: str | None = None, wrap_up: bool = False, msgid: str = ""
    ) -> bool:
        """Record that a member is to get a prompt; return False if ``key`` was recorded before.

        ``place``: the channel for the closing text; ``wrap_up``: the prompt says that the context is nearly full;
        ``msgid``: the message that caused the prompt, which then counts as handled.
        """
        state = self._context.store.state
        if key in state.prompts or any(entry.data["key"] == key for entry in state.pending(Act.PROMPT)):
            return False
        more = {"place": place, "wrap_up": wrap_up, "msgid": msgid}
        fields = {name: value for name, value in more.items() if value}
        self._context.store.intend(Act.PROMPT, nick=nick, key=key, text=text, **fields)
        return True

    def _is_for_successor(self, nick: str, key: str) -> bool:
        """Return whether the prompt ``key`` must wait for the member's successor.

        That is so while the member retires, and while it is being replaced if others could get the prompt instead.
        """
        state = self._context.store.state
        member = state.member(nick)
        shifts = [entry for entry in state.pending(Act.SHIFT) if fold(entry.data["nick"]) == fold(nick)]
        is_replaced = any(entry.data["role"] != ROLES[0] for entry in shifts) and key.startswith(_FOR_ANYBODY)
        return is_replaced or (member is not None and member.leaving)

    def pass_prompts_on(self, nick: str, successor: str) -> None:
        """Record a member's pending prompts for its successor.

        Prompts meant for that member alone, such as its first one, are left out.
        """
        for entry in self._context.store.state.pending(Act.PROMPT):
            data = entry.data
            if fold(data["nick"]) == fold(nick) and data["key"].startswith(_FOR_ANYBODY):
                self.promise(successor, f"{data['key']}-{successor}", data["text"], data.get("place"))

    async def catch_up(self, nick: str) -> None:
        """Give a member its pending prompts, except those that wait for its successor."""
        for entry in self._context.store.state.pending(Act.PROMPT):
            data = entry.data
            if fold(data["nick"]) == fold(nick) and not self._is_for_successor(nick, data["key"]):
                await self.give(nick, data["key"], data["text"], data.get("place"), data.get("wrap_up", False))

    async def tell(self, nick: str, key: str, text: str, place: str | None = None) -> bool:
        """Give a member a prompt; return whether its daemon accepted it. A failure is only logged.

        ``key``: a second prompt with the same key is ignored; ``place``: the channel for the closing text.
        """
        try:
            await self.give(nick, key, text, place)
        except NoAnswer as why:
            log.warning("%s did not accept a prompt: %s", nick, why)
            return False
        return True

    async def prompt_em(self, key: str, text: str, place: str | None = None) -> None:
        """Give the EM a prompt, unless the EM already got one with this ``key``.

        ``place``: the channel for the closing text.
        """
        em = self._context.store.state.em
        if em is not None:
            await self.tell(em.nick, key, text, place)

    async def retire(self, nick: str, why: str, heir: str = "") -> None:
        """End a member: its credentials are revoked, its usage still counts, its name is not reused.

        The member's pending prompts pass to ``heir``, the nick of its successor, unless that is empty. ``why``: the
        reason, for the journal.
        """
        context = self._context
        async with self._turns[fold(nick)]:
            member = context.store.state.member(nick)
            if member is None:
                return
            if not member.leaving:
                context.store.intend(Act.RETIRE, nick=nick, why=why)
            await self._read_final_usage(member)
            await context.handle(member).session.kill()
            await context.daemons.dismiss(member.nick)
            if heir:
                self.pass_prompts_on(nick, heir)
            context.store.done(Act.RETIRE, nick=nick)
            context.agents.pop(member.name, None)
            context.roster.write(context.store.state)

    async def _read_final_usage(self, member: TeamMember) -> None:
        """Record a member's usage before its daemon ends; a daemon without answer is only logged."""
        try:
            await self._context.read_usage(member)
        except NoAnswer as why:
            log.info("%s: %s", member.nick, why)

    async def finished_workers(self, task: TeamTask) -> list[TeamMember]:
        """Return the workers of a task that have completed their first prompt, oldest member first."""
        workers = [member for member in self._context.store.state.team_of(task.id) if member.role in ROLES[2:]]
        return [member for member in workers if member.hired and await self._has_finished(member)]

    async def _has_finished(self, member: TeamMember) -> bool:
        try:
            prompt = await self._context.daemons.call(member.nick, "prompt", key=member.order_key)
            status = await self._context.daemons.call(member.nick, "status")
        except NoAnswer:
            return False
        is_over = prompt.get("outcome") not in ("waiting", "working")
        return is_over and status.get("state") not in IN_TURN and not status.get("unread")

    async def _start(self, member: TeamMember) -> None:
        context = self._context
        context.roster.write(context.store.state)
        await context.daemons.ensure(member.nick)
        status = await context.handle(member).session.refresh()
        directory = member.worktree_path or str(context.config.project_dir)
        if Path(str(status.get("directory", directory))) != Path(directory):
            raise MemberNotStarted(f"{member.nick} is at {status.get('directory')}, and belongs into {directory}")

    def _check_room(self, role: str, task: TeamTask | None) -> None:
        state, limits = self._context.store.state, self._context.config.limits
        if role not in ROLES:
            raise NotHired(f"{role!r} is no role; there are {', '.join(ROLES)}")
        if len(state.members) >= limits.members:
            raise TeamFull(f"the team has {limits.members} members, and limits.members allows no more")
        if task is not None and _count_workers(state.team_of(task.id)) >= limits.per_task and role != "manager":
            raise TeamFull(f"{limits.per_task} work on {task.id} already, and limits.per_task allows no more")
        if parked := state.parked & {"team", task.id if task else ""}:
            raise TeamFull(f"the budget of {min(parked)} is spent: `culture team budget` shows it")

    def _member(self, nick: str) -> TeamMember:
        member = self._context.store.state.member(nick)
        if member is None:
            raise NotHired(f"{nick} is not in the team")
        return member


def _count_workers(members: Collection[TeamMember]) -> int:
    return sum(1 for member in members if member.role != "manager")
