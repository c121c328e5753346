"""BATCH: messages of several lines (IRCv3 draft/multiline)."""

import re

from culture.protocol.caps import MULTILINE
from culture.protocol.message import Message
from culture.server.commands import Unanswered, command
from culture.server.context import Context, as_word
from culture.server.core.labeled_response import labelled
from culture.server.core.multiline import MultilineBatch
from culture.server.core.render import Flavour
from culture.server.errors import Failed, Refused
from culture.server.handlers.messages import client_tags, say

_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


@command("BATCH", params=1)
def batch(ctx: Context, message: Message) -> Unanswered | None:
    """``BATCH +name draft/multiline target``: begin a message of several lines.

    Then send its lines with the tag ``batch=name``, and ``BATCH -name`` to finish it.
    """
    reference = message.params[0]
    sign, name = reference[:1], reference[1:]
    if sign == "-":
        _close(ctx, name)
        return None
    opened = MultilineBatch(name, "*", client_tags(message), _label(ctx, message), ctx.session.connection.last_active)
    ctx.parts.batches.open(ctx.session, opened)
    try:
        opened.target = _target(ctx, sign, message)
    except Failed:
        opened.is_refused = True
        raise
    return Unanswered.YET


def _label(ctx: Context, message: Message) -> str | None:
    return message.tags.get("label") if "labeled-response" in ctx.session.caps.enabled else None


def _target(ctx: Context, sign: str, message: Message) -> str:
    reference, kind, target, *_ = (*message.params, "", "")
    if sign != "+" or not _NAME.fullmatch(reference[1:]):
        text = "A batch name consists of A-Z a-z 0-9 and -; + opens a batch, - closes it"
        raise Failed("BATCH", "INVALID_REFTAG", reference, text=text)
    if kind != MULTILINE or not ctx.session.wants & Flavour.MULTILINE:
        raise Failed(
            "BATCH", "UNKNOWN_TYPE", reference[1:], kind, text=f"Only batches of type {MULTILINE}, with that capability"
        )
    if as_word(target) != target:
        raise Failed("BATCH", "MULTILINE_INVALID", text="A batch needs a target")
    return target


def _close(ctx: Context, name: str) -> None:
    batch, session = ctx.parts.batches.close(ctx.session, name), ctx.session
    if batch is None:
        return
    if batch.label is None or session.is_captured:
        _deliver(ctx, batch)
        return
    captured = session.capture()
    ctx.each(_deliver, batch)
    session.release()
    session.pull(labelled(captured, batch.label, ctx.router.name))


def _deliver(ctx: Context, batch: MultilineBatch) -> None:
    try:
        say(ctx, batch.verb, batch.target, batch.text, batch.tags, tuple(batch.lines))
    except Refused:
        if batch.verb != "NOTICE":  # nothing answers a NOTICE (RFC 2812 §3.3.2)
            raise
