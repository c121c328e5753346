"""What a scripted model may know: commands, options and tools that stand in the request which it was sent.

The double itself holds members of a team to it, whichever test they are in: where a script uses something else the
request is answered with an error that names it, and the model's server fails the test when it ends.

The words ``git`` or ``printf`` are known to every model. Ours are not: ``culture …``, ``irc_client …``, their options,
the forms of a ``TASK:`` line, and the names of MCP tools. What the model itself said before counts for nothing, and
nor does the script that rides in the prompt.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.model.journal import Journal
from tests.support.model.script import STEP, Answer, Call, Fail

UNTOLD = "the script of this test uses what its request does not tell"
_MEMBER = re.compile(r"On IRC you are \S+ You (?:stay|own the task|work on the task)\b")
"""How the roles of a team begin (`culture/orchestrator/prompts`)."""
_CONVERSATIONS = ("messages", "input", "contents")
_OWN = ("assistant", "model", "function_call", "reasoning")
"""The roles and types of what the model itself said, in the words of each API."""
_COMMAND = re.compile(
    r"(?:[\w./-]+ (?:-P )?-m culture[.\w]*\.irc_client|\birc_client|(?<![\w./-])culture(?: [a-z]+)) [a-z][a-z-]*"
    r"(?P<rest>(?:[^|;&<>\n\"']|\"[^\"]*\"|'[^']*')*)"
)
_OPTION = re.compile(r"(?<=\s)--?[a-zA-Z][a-z-]*")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_TASK = re.compile(r"TASK: (?:[a-z_]+:|[a-z-]+-[0-9]+ (?:done|failed|waiting):|)")


def untold(calls: list[Call], body: Mapping[str, Any]) -> list[str]:
    """What these calls use of ours that does not stand in the request."""
    told, tools = text_of(body), {str(tool.get("name")) for tool in body.get("tools", ())}
    found = [call.name for call in calls if call.name is not None and call.name not in tools and call.name not in told]
    for call in calls:
        found += missing(str(call.input.get("command", "")), told)
    return found


def missing(command: str, told: str) -> list[str]:
    """What a shell command uses of ours that a text does not say."""
    return [use for use in uses(command) if use not in told]


def uses(command: str) -> Iterator[str]:
    """What of ours a shell command uses: commands, options, forms of ``TASK:`` lines."""
    for match in _COMMAND.finditer(command):
        rest = match["rest"]
        yield match[0].removesuffix(rest).strip()
        yield from _OPTION.findall(_QUOTED.sub("", rest))
    yield from (match.strip() for match in _TASK.findall(command))


def as_told(wanted: Answer, body: Mapping[str, Any], journal: Journal) -> Answer:
    """The answer that a script wants; an error, where it is a member's and uses what its request does not tell."""
    if not _MEMBER.search(text_of(body)):
        return wanted
    found = untold([step for step in wanted.steps if isinstance(step, Call)], body)
    journal.untold += found
    return Answer((Fail(400, f"{UNTOLD}: {', '.join(found)}"),), wanted.usage) if found else wanted


def text_of(body: Mapping[str, Any]) -> str:
    """All that a request tells its model, without the model's own words and without scripts."""
    others = [
        item
        for conversation in _CONVERSATIONS
        for item in body.get(conversation, ())
        if not isinstance(item, Mapping) or (item.get("role") not in _OWN and item.get("type") not in _OWN)
    ]
    known = {key: value for key, value in body.items() if key not in _CONVERSATIONS}
    return "\n".join(STEP.sub("", text) for text in _texts([known, others]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
