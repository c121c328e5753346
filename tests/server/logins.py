"""Logins for tests without accounts: who shows a password is logged in to the account of that name."""

from culture.server.auth.authenticator import Credentials, ServerIdentity
from tests.support.client import Client


class ByPassword:
    """The password is the account; those that begin with ``a-`` are agents."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        account = connection.password
        return (
            ServerIdentity(account, "agent" if account.startswith("a-") else "human") if account else ServerIdentity()
        )


async def log_in(client: Client, account: str, caps: str = "") -> None:
    """Come in as this account, under the nick of its name."""
    client.send(f"PASS {account}")
    await client.register(f"spark-{account}", caps)
