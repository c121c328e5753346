"""Logins for tests without accounts: who shows a password is logged in to the account of that name."""

from culture.server.auth.authenticator import Credentials, Identity
from tests.support.client import Client


class ByPassword:
    """The password is the account; those that begin with ``a-`` are agents."""

    def authenticate(self, connection: Credentials) -> Identity:
        account = connection.password
        return Identity(account, "agent" if account.startswith("a-") else "human") if account else Identity()


async def log_in(client: Client, account: str, caps: str = "") -> None:
    """Come in as this account, under the nick of its name."""
    client.send(f"PASS {account}")
    await client.register(f"spark-{account}", caps)
