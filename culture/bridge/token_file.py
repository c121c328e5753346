"""What is on disk of those who may use a bridge: digests, never secrets."""

from pydantic import BaseModel, ConfigDict

from culture.bridge.callers import Caller


class StoredRecord(BaseModel):
    """What is on disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Grant(StoredRecord):
    """That somebody may speak under some names, for as long as it lasts."""

    id: str
    names: tuple[str, ...]
    """The nick, then those it may speak for."""
    channels: tuple[str, ...] = ()
    made: float
    expires: float
    digest: str = ""
    """Of the secret to show; empty when its owner has consented and the program has not yet come for it."""
    client: str = ""
    """The program that it was given to by consent."""
    refresh: str = ""
    """Digest of the secret for the next one."""
    spent: tuple[str, ...] = ()
    """Digests of the secrets that were for those before, the newest last: whoever shows one of them stole it."""
    ends: float = 0.0
    """When there is no next one."""

    @property
    def lasts_until(self) -> float:
        """When nothing of it holds any longer."""
        return max(self.expires, self.ends)

    @property
    def caller(self) -> Caller:
        """Whose calls these are."""
        return Caller(self.id, self.names, self.channels)


class Client(StoredRecord):
    """A program that registered itself, in the words of the registration."""

    id: str
    information: str


class TokenFileContents(StoredRecord):
    """The file."""

    grants: tuple[Grant, ...] = ()
    codes: tuple[Grant, ...] = ()
    clients: tuple[Client, ...] = ()
