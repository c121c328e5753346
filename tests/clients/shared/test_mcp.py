"""The MCP servers of an agent, whatever its backend makes of them."""

import pytest

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.mcp import McpServer, mcp_servers

SECRETS = {"TOKEN": "sesame", "WHO": "spark"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["wiki"], "mcp_servers: expected a mapping"),
        ({"a b": {"command": "x"}}, "mcp_servers: 'a b' is no name"),
        ({"wiki": "http://x"}, "mcp_servers.wiki: expected a command or a url"),
        ({"wiki": {}}, "wiki: expected a command or a url"),
        ({"wiki": {"type": "http"}}, "wiki: url must begin with http://"),
        ({"wiki": {"url": "x"}}, "wiki: url must begin with http://"),
        ({"wiki": {"type": "pigeon"}}, "wiki: type is none of stdio, http, sse"),
        ({"wiki": {"type": ["http"]}}, "wiki: type is none of stdio, http, sse"),
        ({"wiki": {"command": "x", "url": "http://x"}}, "wiki: url is no key of a server of type stdio"),
        ({"wiki": {"type": "http", "command": "x"}}, "wiki: command is no key of a server of type http"),
        ({"wiki": {"type": "stdio"}}, "wiki: command is missing"),
        ({"wiki": {"command": "x", "args": "y"}}, "wiki: args is no list of texts"),
        ({"wiki": {"command": "x", "args": [1]}}, "wiki: args is no list of texts"),
        ({"wiki": {"command": "x", "env": {"A": 1}}}, "wiki: env is no mapping"),
        ({"wiki": {"url": "http://${NO_SUCH}/"}}, r"wiki: \$\{NO_SUCH\} is not set in the daemon's environment"),
        ({"wiki": {"command": "x", "args": ["${NO_SUCH}"]}}, r"\$\{NO_SUCH\} is not set"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_and_nothing_secret_is_quoted(said: object, told: str) -> None:
    with pytest.raises(WrongConfiguration, match=told):
        mcp_servers(said, SECRETS)


def test_a_program_and_addresses_are_read() -> None:
    said = {
        "own": {"command": "culture", "args": ["bridge", "stdio"], "env": {"IRC_NICK": "x"}},
        "wiki": {"url": "http://127.0.0.1/mcp"},
        "older": {"type": "sse", "url": "https://example.org/sse", "headers": {"X-A": "b"}},
    }
    assert mcp_servers(said, {}) == (
        McpServer("own", "stdio", "culture", ("bridge", "stdio"), {"IRC_NICK": "x"}),
        McpServer("wiki", "http", url="http://127.0.0.1/mcp"),
        McpServer("older", "sse", url="https://example.org/sse", headers={"X-A": "b"}),
    )
    assert mcp_servers(None, {}) == ()


def test_variables_are_filled_in_everywhere_and_only_on_demand() -> None:
    said = {
        "own": {"command": "${WHO}", "args": ["--as=${WHO}", "${LOG:-quiet}"], "env": {"A": "${TOKEN}"}},
        "wiki": {"url": "${URL:-http://x}/${WHO}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    }
    own, wiki = mcp_servers(said, SECRETS)
    assert "sesame" not in repr((own, wiki))
    assert own.filled(SECRETS) == McpServer("own", "stdio", "spark", ("--as=spark", "quiet"), {"A": "sesame"})
    filled = wiki.filled({**SECRETS, "URL": "https://y"})
    assert (filled.url, filled.headers) == ("https://y/spark", {"Authorization": "Bearer sesame"})
