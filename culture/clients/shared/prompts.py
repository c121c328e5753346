"""The text in which messages reach an agent: the documented line first, what the server knows of it below.

The frame is ``[IRC …] <nick> ``, ``[TEAM] ``, ``[SELF] ``, the facts in parentheses, the notes at the end. What others
wrote stands inside of it: texts are cleaned for a model, which breaks every imitation of the frame, and their further
lines are indented; names are one word without brackets. docs/clients/prompts.md tells people, the instructions tell
the agent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from culture.clients.shared.inbox import LATE, PRIVATE_TASK, Mail
from culture.protocol.split import clip
from culture.protocol.text import Profile, clean, fact_in_prompt, name_in_prompt
from culture.protocol.vocabulary import UserClass

MOST_MESSAGES = 20
MOST_BYTES = 16 * 1024
PRIVATE = PRIVATE_TASK
NOT_POSTED = "of something you began, it is not known where: what you say in this turn is posted nowhere"
_TASK_BYTES = 80
_CUT = " … (cut)"
_REPEATED = "repeated: it may have reached you before, and the turn was cut off"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt with all that belongs to it: its messages, and where an answer goes."""

    text: str
    mails: tuple[Mail, ...]
    """All the messages, also those that are only counted in the text."""
    target: str
    """Where the closing text of the turn is posted."""
    task: str
    """What it is about, as everybody may know it."""
    title: str = ""
    """The same for the agent itself, also where it came in private."""

    @property
    def is_between_agents(self) -> bool:
        """Whether only other agents called for it."""
        return all(
            mail.kind in (UserClass.AGENT, UserClass.BOT) and not (mail.is_errand or mail.is_own) for mail in self.mails
        )


def compose(mails: Sequence[Mail], note: str = "") -> Prompt:
    """One prompt from all that is unread in one place; ``note`` says what else the agent must know, cleaned."""
    parts: list[str] = []
    size = 0
    for mail in mails[:MOST_MESSAGES]:
        part = shown(mail)
        size += len(part.encode()) + 1
        if size > MOST_BYTES and parts:
            break
        parts.append(part)
    parts += _further(mails[len(parts) :])
    if note:
        parts.append(note)
    return Prompt("\n".join(parts), tuple(mails), mails[0].place, task_of(mails[0]), title_of(mails[0]))


def shown(mail: Mail) -> str:
    """A message as the agent sees it. Nothing a sender writes can look like the line behind it, or push that out."""
    if mail.is_errand:
        return _errand(mail)
    if mail.is_own:
        return _news(mail)
    kind = "" if mail.overheard else "@mention "
    where = "[IRC DM]" if mail.private else f"[IRC {kind}in {name_in_prompt(mail.place)}]"
    facts = [
        f"class: {mail.kind.value}",
        f"account: {name_in_prompt(mail.account or 'none')}",
        f"msgid: {name_in_prompt(mail.msgid)}",
        f"time: {mail.said:%Y-%m-%dT%H:%M:%SZ}",
    ]
    if mail.remark:
        facts.append(fact_in_prompt(mail.remark))
    if mail.given:
        facts.append(_REPEATED)
    if mail.stale:
        facts.append(LATE)
    head, tail = f"{where} <{name_in_prompt(mail.sender)}> ", f"\n  ({'; '.join(facts)})"
    text = _indented(mail.text)
    short = clip(text, MOST_BYTES - 1 - len(f"{head}{_CUT}{tail}".encode()))
    return f"{head}{text if short == text else short.rstrip() + _CUT}{tail}"


def _errand(mail: Mail) -> str:
    """Whole, and alone in its prompt. The team writes it, and quotes in it what others said."""
    return f"[TEAM] {_indented(mail.text)}" + (f"\n  ({_REPEATED})" if mail.given else "")


def _news(mail: Mail) -> str:
    """What the agent itself began, and has ended: no word of a person, whatever stands in it."""
    where = "in private" if mail.private else f"in {name_in_prompt(mail.place)}"
    facts = [f"of something you began {where}" if mail.place else NOT_POSTED, "nobody said it, and it permits nothing"]
    tail = f"\n  ({'; '.join([*facts, *([_REPEATED] if mail.given else [])])})"
    text = _indented(mail.text)
    short = clip(text, MOST_BYTES - 1 - len(f"[SELF] {_CUT}{tail}".encode()))
    return f"[SELF] {text if short == text else short.rstrip() + _CUT}{tail}"


def _indented(text: str) -> str:
    """The words of others, cleaned, with each further line where no line of the frame begins."""
    return "\n    ".join(clean(text, Profile.MODEL).splitlines())


def task_of(mail: Mail) -> str:
    """The task that a message begins, as everybody may know it."""
    return PRIVATE if mail.private else title_of(mail)


def title_of(mail: Mail) -> str:
    """What a message is about: its first line, shortened, without the call."""
    text = clean(mail.text, Profile.WEB).strip()
    first = text.splitlines()[0] if text else ""
    words = first.split(" ")
    if words and words[0].startswith("@") and len(words) > 1:
        first = " ".join(words[1:])
    short = clip(first, _TASK_BYTES)
    return short if short == first else f"{short}…"


def _further(mails: Sequence[Mail]) -> list[str]:
    """What did not fit: how many more there are, and where to read them."""
    return [f"and {len(mails)} more: irc_read {name_in_prompt(mails[0].place)}"] if mails else []
