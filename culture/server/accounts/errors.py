"""What can be wrong with an account or with the file of accounts."""

from culture.server.errors import StartError


class AccountsError(StartError):
    """The file of accounts cannot be used; the message says what to do about it."""


class AccountRefused(Exception):
    """An account cannot be made or changed as asked; the message is for people."""


class NoSuchAccount(AccountRefused):
    """Nobody has an account of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no account {name}")


class Revoked(AccountRefused):
    """The account may not log in any longer."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the account {name} is revoked")


class NameTaken(AccountRefused):
    """The name or nick belongs to another account."""

    def __init__(self, name: str, owner: str) -> None:
        super().__init__(f"{name} belongs to the account {owner}")
