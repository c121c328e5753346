"""Approvals: the server checks the message that an agent names as the answer it got.

An agent publishes who answered its question, and with that it could claim anything. So it also names the msgid of the
answer, and the server on which it publishes the fact finds that message in its own history. The verdict is

- ``true``: the named message is from who the fact says, of the class that it says, for this agent, not older than the
  question, and its sender had logged in with a credential;
- ``false``: the history contradicts the fact;
- ``unknown``: it cannot be told, and the reason says why: the history is off, the message is another server's or calls
  somebody else, the fact does not say when the question was asked, or nothing proves the login.

What the message means is not judged: that is between the person and the agent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from culture.protocol.mentions import calls_all, mentions
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import Tag, UserClass, Verified
from culture.server.core.state import User
from culture.server.events import Said, nick_of
from culture.server.skill import Host
from culture.skills.ledger.facts import CONFIRMED, moment

_SKEW = 60.0
"""Seconds that the clock of an agent's machine may be ahead of the server's."""
_LONGEST_NAME = 64


class ApprovalVerdict(NamedTuple):
    """Result of checking an approval, with the reason.

    ``is_proven``: whether the sender's login was proven (None: unknown).
    """

    verified: Verified
    why: str
    is_proven: bool | None = None


async def verdict_on(host: Host, agent: User, fields: Mapping[str, Any]) -> ApprovalVerdict:
    """Return whether the message that a closed question names as its answer is what the fact says.

    It must be stored, addressed to ``agent``, and of the person whom the fact names. ``fields``: those of the
    question's fact, published by ``agent``.
    """
    msgid = fields.get("answer")
    if not isinstance(msgid, str) or not msgid:
        return ApprovalVerdict(Verified.UNKNOWN, "the fact names no message", False)
    try:
        said = await host.find_stored(msgid)
    except LookupError as error:
        return ApprovalVerdict(Verified.UNKNOWN, str(error.args[0]))
    if said is None or not _is_readable_by(host, agent, said):
        # The reason must not reveal who sent a message that was not for this agent.
        is_own = msgid.partition(".")[0] == host.config.short_name
        why = f"the history of {host.config.short_name} has no such message to {agent.nick}"
        return ApprovalVerdict(Verified.FALSE if is_own else Verified.UNKNOWN, why)
    if not _is_addressed_to(agent, said):
        return ApprovalVerdict(Verified.UNKNOWN, f"the message was said where {agent.nick} is, and not to it", False)
    return _compare(said, fields)


def corrected(fields: Mapping[str, Any], verdict: ApprovalVerdict) -> dict[str, Any]:
    """Return the fact's fields, without ``human_confirmed`` if the verdict contradicts that."""
    is_wrong = verdict.verified is Verified.FALSE or verdict.is_proven is False
    return {key: each for key, each in fields.items() if not (key == CONFIRMED and is_wrong)}


def _is_readable_by(host: Host, agent: User, said: Said) -> bool:
    """Return whether the agent could read a message: private, a mention, or in its channel."""
    if said.verb == "TAGMSG":
        return False
    if not is_channel(said.target):
        return fold(said.target) == fold(agent.nick)
    channel = host.network.channel(said.target)
    is_member = channel is not None and agent in channel.members
    return is_member or fold(agent.nick) in map(fold, said.mentions)


def _is_addressed_to(agent: User, said: Said) -> bool:
    """Return whether a message addresses the agent, and not somebody else in the channel.

    A NOTICE counts as addressed: another agent's daemon answers with one, and it mentions nobody.
    """
    if not is_channel(said.target) or said.verb == "NOTICE" or fold(agent.nick) in map(fold, said.mentions):
        return True
    return calls_all(said.text) or bool(mentions(said.text, [agent.nick]))


def _compare(said: Said, fields: Mapping[str, Any]) -> ApprovalVerdict:
    nick, claimed, asked = nick_of(said.source), str(fields.get("class")), moment(fields.get("asked"))
    if fold(nick) != fold(str(fields.get("by"))):
        return ApprovalVerdict(Verified.FALSE, f"the message is from {_short(nick)}")
    if asked is not None and said.id.at < asked - _SKEW:
        return ApprovalVerdict(Verified.FALSE, "the message is older than the question")
    if claimed != said.kind:
        return ApprovalVerdict(Verified.FALSE, f"{_short(nick)} was of class {said.kind}")
    if asked is None:
        return ApprovalVerdict(Verified.UNKNOWN, "the fact does not say when the question was asked", False)
    if said.account is None:
        return ApprovalVerdict(Verified.UNKNOWN, f"{_short(nick)} was not logged in", False)
    if Tag.KEYBOARD.value in said.tags:
        why = "a login by local uid, which any process of that user has"
        return ApprovalVerdict(Verified.UNKNOWN, why, False)
    proof = said.tags.get(Tag.LOGIN.value)
    if proof is None:
        return ApprovalVerdict(Verified.UNKNOWN, f"nothing proves the login of {_short(nick)}", False)
    why = f"logged in as {_short(said.account)} ({proof})"
    return ApprovalVerdict(Verified.TRUE, why, said.kind == UserClass.HUMAN)


def _short(name: str) -> str:
    return name[:_LONGEST_NAME]
