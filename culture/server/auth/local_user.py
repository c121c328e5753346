"""Login by local uid: programs of the account's own user on this machine need no password.

An agent's processes have the same uid, and so has a tunnel through which others may come: for those the uid proves
nothing. ``objection`` finds the processes that hold the client's socket and says why they are refused.
"""

import pwd
from typing import TYPE_CHECKING

from culture.config import peer_uid, process_owner
from culture.config.model import ServerConfig
from culture.lib.secret_compare import same_secret
from culture.runtime import REAL, Runtime
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account

if TYPE_CHECKING:  # the command line asks only for uids
    from culture.server.core.session import Session

TUNNELS = frozenset(
    {
        "autossh",
        "chisel",
        "cloudflared",
        "dbclient",
        "dropbear",
        "frpc",
        "ngrok",
        "socat",
        "ssh",
        "sshd",
        "sshd-session",
        "stunnel",
        "stunnel4",
        "tailscaled",
    }
)
"""Names of processes that bring connections from elsewhere, whose uid proves nothing."""


def account_at(session: "Session", nick: str, accounts: AccountStore, config: ServerConfig) -> Account | None:
    """Return the account that owns the nick if the client runs as the account's local user.

    Returns None otherwise; always for a WebSocket, which comes from a web page and not from the user, and where the
    kernel cannot name the process.
    """
    if not session.is_local or session.is_websocket or not peer_uid.IS_KNOWN:
        return None
    if config.password is not None and not same_secret(session.password, config.password):
        return None
    account = accounts.owner_of(nick)
    if account is None or account.user is None or not account.is_active:
        return None
    uid = uid_of(account.user)
    return account if uid is not None and session.connection.peer_uid() == uid else None


def objection(inode: int | None, *, runtime: Runtime = REAL) -> str:
    """Return why the uid that owns a client's socket proves nothing about the client, or "".

    ``inode`` is the socket's inode, None if it is unknown. Searches the processes of this machine, which blocks.
    """
    try:
        pids = [] if inode is None else process_owner.holders(inode, runtime=runtime)
    except process_owner.TooManyProcesses:
        pids = []
    agents = [agent for agent in map(process_owner.agent_of, pids) if agent is not None]
    if agents:
        return f"you are a process of {agents[0]}: use irc_client"
    names = [name for name in map(process_owner.name_of, pids) if name]
    for name in names:
        if name in TUNNELS:
            return f"you come through {name}, as others may: log in"
    # A process that has just ended leaves no trace of its owner.
    return "" if names else "the server cannot see which program you are: log in"


def uid_of(user: str) -> int | None:
    """Return the uid of a local user, given as name or number; None if nobody has the name."""
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
