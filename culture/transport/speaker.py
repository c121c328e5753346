"""Saying something and knowing how it ended."""

import asyncio
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from culture.protocol.message import Message as Line
from culture.transport.channels import hinted
from culture.transport.dedup import Delivery
from culture.transport.requests import refusal
from culture.transport.sending import client_tags, utterances
from culture.transport.session import IrcSession
from culture.transport.types import NotSent, guarded

_UNKNOWN = ("401", "403", "404", "442", "INVALID_TARGET")


class Speaker:
    """Says one text after the other to each target, so that no two mix."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def say(
        self, session: IrcSession, verb: str, target: str, text: str, tags: Mapping[str, str], skip: int = 0
    ) -> list[str]:
        """The ids of what was said, as far as the server tells them; ``NotSent`` with its words.

        A text that is too long for one message becomes several, of which the first ``skip`` were said before.
        """
        view = session.view
        marks = client_tags(tags, "message-tags" in session.enabled)
        said = utterances(verb, target, text, marks, view.prefix, session.multiline)
        turn = self._turns.setdefault(view.fold(target), asyncio.Lock())
        msgids: list[str] = []
        async with turn:
            for lines in said[skip:]:
                msgids += await self._utter(session, verb, target, lines)
        return msgids

    async def _utter(self, session: IrcSession, verb: str, target: str, lines: Sequence[Line]) -> list[str]:
        items = await session.ask(*lines, paced=True)
        echoes = [item for item in map(session.reader.message, items) if item is not None and item.own]
        refused = refusal(items)
        if refused is not None and not echoes:
            if refused.code in _UNKNOWN:
                raise NotSent(hinted(refused.reason, target, session.view.names()), refused.code)
            raise refused
        if "echo-message" not in session.enabled:
            guarded(self._delivery.said, session.reader.said_by_us(verb, target, lines))
        elif "labeled-response" in session.enabled and not echoes:
            raise NotSent(f"the server did not pass it on to {target}")
        return [echo.msgid for echo in echoes if "msgid" in echo.tags]
