"""A hook of Claude Code that somebody started by hand: tells the daemon what it does, and brings back its whispers.

``python3 -m culture.clients.shared.skill.hook`` reads what Claude Code says of the event on standard input. An agent
that its daemon has started is seen without it. It never keeps Claude from working: whatever fails, it says nothing.
"""

import json
import os
import sys
from typing import Any

from culture.clients.shared.skill.call import CallFailed, call
from culture.protocol.vocabulary import Environment

PATIENCE = 5.0
LONGEST = 4000
"""So much of a text is told."""


def main() -> int:
    """Pass one event on."""
    nick = os.environ.get(Environment.NICK)
    if not nick or Environment.TOKEN in os.environ:
        return 0
    try:
        event = json.load(sys.stdin)
        name = str(event["hook_event_name"])
        asked = {"content": content(event), "hear": name in CAN_TELL}
        answer: Any = call(nick, "activity", asked, patience=PATIENCE)
        whispers = answer["whispers"]
    except (CallFailed, ValueError, KeyError, TypeError):
        return 0
    if whispers:
        said = {"hookEventName": name, "additionalContext": "\n".join(whispers)}
        print(json.dumps({"hookSpecificOutput": said}))
    return 0


CAN_TELL = ("SessionStart", "PostToolUse", "PostToolUseFailure")
"""With these events Claude Code takes something for its model."""


def content(event: dict[str, Any]) -> list[dict[str, object]]:
    """What an event says of the agent, in blocks of the contract."""
    match event:
        case {"hook_event_name": "PostToolUse" | "PostToolUseFailure", "tool_name": name}:
            given = json.dumps(event.get("tool_input"))
            shown = event.get("tool_input") if len(given) <= LONGEST else {"input": given[:LONGEST]}
            return [{"type": "tool_use", "id": event.get("tool_use_id", ""), "name": name, "input": shown}]
        case {"hook_event_name": "Stop", "last_assistant_message": str(text)} if text:
            return [{"type": "text", "text": text[:LONGEST]}]
    return []


if __name__ == "__main__":
    sys.exit(main())
