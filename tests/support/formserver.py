"""An MCP server over standard input and output whose only tool, ``order``, asks the user by a form."""

import json
import sys
from typing import Any

FORM = {
    "type": "object",
    "properties": {
        "dish": {"type": "string", "enum": ["soup", "rice"]},
        "spicy": {"type": "boolean", "title": "spicy"},
    },
    "required": ["dish", "spicy"],
}
TOOL = {"name": "order", "description": "Order lunch.", "inputSchema": {"type": "object", "properties": {}}}


def say(**message: Any) -> None:
    """One message to the client."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Answer requests until the client goes."""
    call: object = None
    for line in sys.stdin:
        said = json.loads(line)
        match said:
            case {"method": "initialize", "id": id, "params": {"protocolVersion": version}}:
                about = {"name": "lunch", "version": "1"}
                say(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            case {"method": "tools/list", "id": id}:
                say(id=id, result={"tools": [TOOL]})
            case {"method": "tools/call", "id": id}:
                call = id
                params = {"message": "Lunch for today?", "requestedSchema": FORM}
                say(id="form", method="elicitation/create", params=params)
            case {"id": "form"}:
                text = json.dumps(said.get("result") or said.get("error"))
                say(id=call, result={"content": [{"type": "text", "text": f"form: {text}"}]})
            case {"method": str(), "id": id}:
                say(id=id, result={})


if __name__ == "__main__":
    main()
