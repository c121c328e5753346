"""The wiki of a team: Markdown pages in git, for agents by MCP and for people by commands.

| file | what it holds |
|---|---|
| `client.py`, `remote.py`, `queue.py` | a wiki as programs use it: local, behind MCP, with queued writes |
| `pages.py` | `Pages`: read, write on top of a revision, list, search, history |
| `repository.py` | the bare git repository with its write lock, and its log |
| `names.py`, `page_templates.py` | rules for page names; the first pages |
| `tools.py`, `identity.py`, `server.py` | the five MCP tools, the caller's nick, HTTP and stdio |
| `types.py`, `errors.py` | results and errors |

The flow of a write: `queue` → `client` (or `remote` → `server` → `tools`) → `pages` checks the base revision →
`repository` creates a commit and moves the branch, if nobody else has moved it.
"""
