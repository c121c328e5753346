"""What reads, writes and judges the wire is in protocol/ and nowhere else."""

import ast
import re
from pathlib import Path

import pytest

import culture

SOURCE = Path(culture.__file__).parent
# For speed these write some lines by hand; tests/server/test_messaging.py and test_capabilities.py read them back.
# Those in layers/ speak HTTP, and WebSocket, where a frame is a line without its end.
WRITE_LINES = {
    "server/core/render.py",
    "server/core/labeled_response.py",
    "server/net/websocket.py",
    "server/metrics_http.py",
    # The documented form has a colon before every text.
    "skills/history/verb.py",
    # What a peer said goes on as it came.
    "federation/backfill.py",
    "federation/courier.py",
    # HTTP, not IRC: the way out of a sandbox.
    "clients/shared/sandbox/forwarder.py",
    "clients/shared/sandbox/gate.py",
}
# N02: what was said, as its readers get it, has this name too; it knows nothing of lines.
NAMESAKES = {"transport/types.py": {"Message"}}
CARRIAGE_RETURNS = (r"\r", r"\x0d", r"\x0D", r"\15", r"\015", r"\u000d", r"\u000D", r"\N{", r"\U0")
JUDGES = re.compile("Message|LineBuffer|oversize|fold|valid_((local_)?nick|channel|short_name)|split_text|(un)?escape")


def public(tree: ast.Module) -> set[str]:
    """The functions and classes that a module offers."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.requirement("A06")
def test_nothing_but_protocol_reads_writes_or_judges_the_wire() -> None:
    """A06: no second parser, no second rule for names, no line ends elsewhere."""
    sources = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    inside = {path for path in trees if path.startswith("protocol/")}
    offered = set().union(*(public(trees[path]) for path in inside))
    assert {"Message", "LineBuffer", "oversize", "fold", "valid_local_nick", "valid_channel", "split_text"} <= offered
    for path in trees.keys() - inside:
        judges = {name for name in public(trees[path]) if JUDGES.fullmatch(name)}
        assert judges - NAMESAKES.get(path, set()) == set(), path
        # However it is written, a line end has a backslash in the source.
        if not any(escape in sources[path] for escape in CARRIAGE_RETURNS):
            continue
        texts = {node.value for node in ast.walk(trees[path]) if isinstance(node, ast.Constant)}
        assert path in WRITE_LINES or not [text for text in texts if ascii(text).endswith(r"\r\n'")], path
