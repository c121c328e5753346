"""Members come and go: each act is intended in the journal, can be done again, and is then done."""

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
from culture.orchestrator.journal.state import TeamMember, TeamTask, What
from culture.orchestrator.members.daemons import Away
from culture.orchestrator.members.handles import figures, handle
from culture.orchestrator.members.other_teams import names_of_others, one_at_a_time
from culture.orchestrator.parts import TeamParts
from culture.protocol.names import fold

log = logging.getLogger(__name__)

SEEN = ("working", "asking")
"""The states of an agent that is in a turn."""
_FOR_ANYBODY = ("wake-", "back-", "finished-", "gone-", "overlap-", "refused-", "nobody-", "still-")
"""How the keys of prompts begin that are meant for whoever has the work."""


class MemberHiring:
    """Starts members, gives them something to do, and ends them."""

    def __init__(self, parts: TeamParts) -> None:
        self._parts = parts
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def hire(
        self, role: str, task: TeamTask | None, order: str, msgid: str = "", name: str | None = None
    ) -> TeamMember:
        """Somebody new; NotHired says why not."""
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
        """Write down who comes, perhaps instead of somebody else; the nick. From here on the name is taken."""
        parts = self._parts
        if not instead:
            self._check_room(role, task)
        with one_at_a_time(parts.folder):
            name = self._free(name) if name else self.next_name()
            nick = parts.nick_of(name)
            parts.book.intend(
                What.HIRE,
                name=name,
                nick=nick,
                role=role,
                task=task.id if task else None,
                channels=list(parts.roster.channels_of(role, task.channel if task else None)),
                worktree=task.worktree if task else str(parts.config.project_dir),
                order=order,
                order_key=f"{nick}-{uuid4().hex}",
                **({"msgid": msgid} if msgid else {}),
            )
        return nick

    def next_name(self) -> str:
        """A name that nobody has or had on this machine: their mail, session and spending are kept under it."""
        parts = self._parts
        given, known = parts.book.state.names, names.load(parts.config.project_dir)
        taken = [*given, parts.config.em_name, *names_of_others(parts.folder, parts.server, past=True)]
        try:
            return names.next_name(known, taken, self._was_here)
        except names.NoNames as none:
            raise NotHired(str(none)) from None

    def _was_here(self, name: str) -> bool:
        nick = self._parts.nick_of(name)
        daemons = self._parts.daemons
        return paths.inbox_file(nick).exists() or daemons.is_running(nick) or daemons.has_account(nick)

    def _free(self, name: str) -> str:
        if fold(name) in map(fold, names_of_others(self._parts.folder, self._parts.server, past=True)):
            nick = self._parts.nick_of(name)
            raise NotHired(f"{nick} is or was in another team: choose another em_name in team.yaml")
        return name

    async def settle(self, nick: str) -> TeamMember:
        """Whoever was to come is there and knows what to do; from whatever point that was left at."""
        async with self._turns[nick.lower()]:
            member = self._member(nick)
            try:
                await self._start(member)
                if not member.hired:
                    self._parts.book.done(What.HIRE, nick=nick)
                await self.give(nick, member.order_key, member.order, member.channels[0])
                await self.catch_up(nick)
            except (MemberNotStarted, NoAnswer) as wrong:
                await self._give_up(member, str(wrong))
                raise NotHired(str(wrong)) from None
            return self._member(nick)

    async def _give_up(self, member: TeamMember, why: str) -> None:
        """Somebody who was never there is not missed; whoever was is left to those who replace them."""
        parts = self._parts
        if member.hired:
            return
        await parts.daemons.stop(member.nick)
        await parts.daemons.dismiss(member.nick)
        parts.book.failed(What.HIRE, nick=member.nick, why=why)
        parts.agents.pop(member.name, None)
        parts.roster.write(parts.book.state)

    async def give(self, nick: str, key: str, text: str, place: str | None = None, wrap_up: bool = False) -> None:
        """Give a member something to do, once under each key. NoAnswer when its daemon does not take it: then later."""
        self.promise(nick, key, text, place, wrap_up)
        if key in self._parts.book.state.prompts:
            return
        if self._is_kept(nick, key):
            raise NoAnswer(f"{nick} is about to go: it is kept for who follows")
        await self._hand(nick, key, text, place)
        self._parts.book.done(What.PROMPT, nick=nick, key=key, **({"wrap_up": True} if wrap_up else {}))

    async def _hand(self, nick: str, key: str, text: str, place: str | None) -> None:
        """Its answer is posted where it belongs; a member that is not let in there answers nowhere."""
        call = self._parts.daemons.call
        if place is None:
            await call(nick, "prompt", text=text, key=key)
            return
        try:
            await call(nick, "prompt", text=text, key=key, place=place)
        except Away:
            raise
        except NoAnswer as refused:
            log.warning("%s does not answer in %s: %s", nick, place, refused)
            await call(nick, "prompt", text=text, key=key)

    def promise(
        self, nick: str, key: str, text: str, place: str | None = None, wrap_up: bool = False, msgid: str = ""
    ) -> bool:
        """Write down that a member is to be given something; False when that was done before."""
        state = self._parts.book.state
        if key in state.prompts or any(entry.data["key"] == key for entry in state.pending(What.PROMPT)):
            return False
        more = {"place": place, "wrap_up": wrap_up, "msgid": msgid}
        known = {name: value for name, value in more.items() if value}
        self._parts.book.intend(What.PROMPT, nick=nick, key=key, text=text, **known)
        return True

    def _is_kept(self, nick: str, key: str) -> bool:
        """Whether somebody goes who would not come to it any more."""
        state = self._parts.book.state
        member = state.member(nick)
        goes = [entry for entry in state.pending(What.SHIFT) if entry.data["nick"].lower() == nick.lower()]
        is_followed = any(entry.data["role"] != ROLES[0] for entry in goes) and key.startswith(_FOR_ANYBODY)
        return is_followed or (member is not None and member.leaving)

    def bequeath(self, nick: str, successor: str) -> None:
        """What somebody was told by others and could not be given is for who follows; their own orders are not."""
        for entry in self._parts.book.state.pending(What.PROMPT):
            data = entry.data
            if data["nick"].lower() == nick.lower() and data["key"].startswith(_FOR_ANYBODY):
                self.promise(successor, f"{data['key']}-{successor}", data["text"], data.get("place"))

    async def catch_up(self, nick: str) -> None:
        """What a member was to be given and could not."""
        for entry in self._parts.book.state.pending(What.PROMPT):
            data = entry.data
            if data["nick"].lower() == nick.lower() and not self._is_kept(nick, data["key"]):
                await self.give(nick, data["key"], data["text"], data.get("place"), data.get("wrap_up", False))

    async def tell(self, nick: str, key: str, text: str, place: str | None = None) -> bool:
        """The same where nothing depends on it; whether it was taken."""
        try:
            await self.give(nick, key, text, place)
        except NoAnswer as why:
            log.warning("%s was not told: %s", nick, why)
            return False
        return True

    async def prompt_em(self, key: str, text: str, place: str | None = None) -> None:
        """Give the EM a prompt, once under each key."""
        em = self._parts.book.state.em
        if em is not None:
            await self.tell(em.nick, key, text, place)

    async def retire(self, nick: str, why: str, heir: str = "") -> None:
        """Somebody goes: name and nick rest, nobody logs in as them any more, what they used still counts.

        What was said to them up to the end is for the heir, where there is one.
        """
        parts = self._parts
        async with self._turns[nick.lower()]:
            member = parts.book.state.member(nick)
            if member is None:
                return
            if not member.leaving:
                parts.book.intend(What.RETIRE, nick=nick, why=why)
            await self._last_figures(member)
            await handle(self._parts, member).session.kill()
            await parts.daemons.dismiss(member.nick)
            if heir:
                self.bequeath(nick, heir)
            parts.book.done(What.RETIRE, nick=nick)
            parts.agents.pop(member.name, None)
            parts.roster.write(parts.book.state)

    async def _last_figures(self, member: TeamMember) -> None:
        """What was used counts also of who is gone."""
        try:
            await figures(self._parts, member)
        except NoAnswer as why:
            log.info("%s: %s", member.nick, why)

    async def finished_workers(self, task: TeamTask) -> list[TeamMember]:
        """The workers of a task that have done what they were hired for, the oldest first."""
        workers = [member for member in self._parts.book.state.team_of(task.id) if member.role in ROLES[2:]]
        return [member for member in workers if member.hired and await self._has_finished(member)]

    async def _has_finished(self, member: TeamMember) -> bool:
        try:
            told = await self._parts.daemons.call(member.nick, "prompt", key=member.order_key)
            status = await self._parts.daemons.call(member.nick, "status")
        except NoAnswer:
            return False
        is_over = told.get("outcome") not in ("waiting", "working")
        return is_over and status.get("state") not in SEEN and not status.get("unread")

    async def _start(self, member: TeamMember) -> None:
        parts = self._parts
        parts.roster.write(parts.book.state)
        await parts.daemons.ensure(member.nick)
        status = await handle(self._parts, member).session.look()
        wanted = member.worktree_path or str(parts.config.project_dir)
        if Path(str(status.get("directory", wanted))) != Path(wanted):
            raise MemberNotStarted(f"{member.nick} is at {status.get('directory')}, and belongs into {wanted}")

    def _check_room(self, role: str, task: TeamTask | None) -> None:
        state, limits = self._parts.book.state, self._parts.config.limits
        if role not in ROLES:
            raise NotHired(f"{role!r} is no role; there are {', '.join(ROLES)}")
        if len(state.members) >= limits.members:
            raise TeamFull(f"the team has {limits.members} members, and limits.members allows no more")
        if task is not None and _crowd(state.team_of(task.id)) >= limits.per_task and role != "manager":
            raise TeamFull(f"{limits.per_task} work on {task.id} already, and limits.per_task allows no more")
        if parked := state.parked & {"team", task.id if task else ""}:
            raise TeamFull(f"the budget of {min(parked)} is spent: `culture team budget` shows it")

    def _member(self, nick: str) -> TeamMember:
        member = self._parts.book.state.member(nick)
        if member is None:
            raise NotHired(f"{nick} is not in the team")
        return member


def _crowd(members: Collection[TeamMember]) -> int:
    return sum(1 for member in members if member.role != "manager")
