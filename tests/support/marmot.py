"""A little MCP server on its pipes, with one tool: ``python marmot.py FILE`` notes in the file that it was called."""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = "whistle_once"
ANSWER = "the marmot whistles"


def answer(method: str, asked: dict[str, Any], file: Path) -> dict[str, Any]:
    """What a request gets."""
    match method:
        case "initialize":
            return {
                "protocolVersion": asked.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "marmot", "version": "1.0"},
            }
        case "tools/list":
            schema = {"type": "object", "properties": {}}
            return {"tools": [{"name": TOOL, "description": "Whistles, once.", "inputSchema": schema}]}
        case "tools/call":
            file.write_text("called", encoding="utf-8")
            return {"content": [{"type": "text", "text": ANSWER}]}
    return {}


def main(file: Path) -> None:
    """Answer until nobody asks any more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            result = answer(asked["method"], asked.get("params") or {}, file)
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
