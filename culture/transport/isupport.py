"""What a server says of itself (005), as far as it matters to a client."""

from collections.abc import Callable, Iterable

from culture.protocol.modes import ModeKind
from culture.protocol.names import fold

_RFC1459 = str.maketrans("[]\\~", "{}|^")
_STRICT = str.maketrans("[]\\", "{}|")
_KINDS = (ModeKind.LIST, ModeKind.ALWAYS, ModeKind.WHEN_SET, ModeKind.FLAG)


class ISupport:
    """The tokens, read as they come; before they come, what RFC 2812 says."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}

    def take(self, words: Iterable[str]) -> None:
        """The tokens of one line."""
        for word in words:
            name, _, value = word.partition("=")
            if name.startswith("-"):
                self.tokens.pop(name[1:], None)
            elif name:
                self.tokens[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.tokens

    def number(self, name: str, default: int) -> int:
        """A token that is a number from 1 on."""
        value = self.tokens.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and value.strip("0") else default

    @property
    def prefixes(self) -> dict[str, str]:
        """Member modes by the sign that shows them, the highest first."""
        modes, _, signs = self.tokens.get("PREFIX", "(ov)@+").lstrip("(").partition(")")
        return dict(zip(signs, modes, strict=False))

    @property
    def kinds(self) -> dict[str, ModeKind]:
        """When a channel mode has a parameter."""
        groups = self.tokens.get("CHANMODES", "beI,k,l,imnpst").split(",")
        kinds = {letter: kind for kind, letters in zip(_KINDS, groups, strict=False) for letter in letters}
        return {**kinds, **dict.fromkeys(self.prefixes.values(), ModeKind.PREFIX)}

    @property
    def fold(self) -> Callable[[str], str]:
        """How names compare here."""
        match self.tokens.get("CASEMAPPING", "rfc1459"):
            case "rfc1459":
                return lambda name: fold(name).translate(_RFC1459)
            case "rfc1459-strict":
                return lambda name: fold(name).translate(_STRICT)
            case _:
                return fold

    def is_channel(self, target: str) -> bool:
        """Whether a target is a channel, as names of channels begin here."""
        return target[:1] != "" and target[0] in (self.tokens.get("CHANTYPES") or "#&")

    def channel_of(self, target: str) -> str:
        """The channel of a target that may be for a rank only (STATUSMSG)."""
        bare = target.lstrip(self.tokens.get("STATUSMSG", ""))
        return bare if self.is_channel(bare) else target
