"""The block of the contract that holds the result of a tool call."""

import hashlib
import json
from typing import Any

from culture.clients.shared.secret_mask import mask_secrets
from culture.protocol.split import clip

HEAD_BYTES = 300
TAIL_BYTES = 300
MARGIN = 8000


def tool_result(call: str, output: object, *, failed: bool = False) -> dict[str, Any]:
    """Head and tail of a tool's output without secrets, and a digest of all of it by which two outputs are compared."""
    text = _text(output)
    return {
        "type": "tool_result",
        "tool_use_id": call,
        "content": head_and_tail(text),
        "is_error": failed,
        "digest": hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16],
    }


def head_and_tail(text: str) -> str:
    """The first and the last bytes of a long text, secrets masked, with the number of bytes left out between them."""
    octets = text.encode(errors="replace")
    if len(octets) <= HEAD_BYTES + TAIL_BYTES:
        return mask_secrets(text)
    # A margin on both sides, so that no secret is cut before it is seen; all of it could be megabytes.
    head = clip(mask_secrets(clip(text, HEAD_BYTES + MARGIN)), HEAD_BYTES)
    tail = mask_secrets(octets[-TAIL_BYTES - MARGIN :].decode(errors="ignore")).encode(errors="replace")[-TAIL_BYTES:]
    return f"{head} [… {len(octets) - HEAD_BYTES - TAIL_BYTES} bytes …] {tail.decode(errors='ignore')}"


def _text(output: object) -> str:
    """The text of an output; of a list of blocks, as MCP has them, the texts of these."""
    match output:
        case None:
            return ""
        case str():
            return output
        case [*blocks]:
            return "\n".join(_text(block) for block in blocks)
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "content", "content": inner}:
            return _text(inner)
        case {"type": "image" | "audio" | "resource" as kind}:
            return f"({kind})"
    return json.dumps(output, ensure_ascii=False, default=str, sort_keys=True)
