"""The bridge: IRC as five MCP tools, for programs that have no daemon of ours.

| file | what it holds |
|---|---|
| `server.py` | builds the HTTP application with its limits per token, serves it, or stdio |
| `tools.py`, `tool_answers.py` | the five tools and their cleaned answers |
| `client.py` | the bridge on IRC: executes the tools, checks who may act as whom |
| `connection_pool.py` | one IRC connection per nick: opened on use, closed when idle |
| `access.py` | tokens, consent codes, registered programs; their file (digests only) |
| `bearer_tokens.py`, `oauth.py` | checks a request's token; OAuth consent for remote programs |
| `callers.py` | the identity and rate limit of callers |
| `settings.py` | the bridge's settings from environment variables |

The flow of a call: `mcp_http` admits the request → `server.TokenQuotas` → `bearer_tokens` → `tools` → `client` →
`connection_pool` → the transport.
"""
