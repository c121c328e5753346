"""ISUPPORT: the tokens of numeric 005 that tell a client about the server's features."""

from collections.abc import Callable, Iterable

from culture.protocol.modes import ModeKind
from culture.protocol.names import fold

_RFC1459 = str.maketrans("[]\\~", "{}|^")
_STRICT = str.maketrans("[]\\", "{}|")
_KINDS = (ModeKind.LIST, ModeKind.ALWAYS, ModeKind.WHEN_SET, ModeKind.FLAG)


class ISupport:
    """The tokens of the server's 005 lines by name; tokens not sent have the RFC 2812 defaults."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}

    def take(self, words: Iterable[str]) -> None:
        """Add the tokens of one 005 line, and remove those that ``words`` names with a minus sign."""
        for word in words:
            name, _, value = word.partition("=")
            if name.startswith("-"):
                self.tokens.pop(name[1:], None)
            elif name:
                self.tokens[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.tokens

    def number(self, name: str, default: int) -> int:
        """Return the value of the token ``name`` as a number; ``default`` if it is not at least 1."""
        value = self.tokens.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and value.strip("0") else default

    @property
    def prefixes(self) -> dict[str, str]:
        """The mode letter of each member prefix, the highest rank first: ``{"@": "o", "+": "v"}``."""
        modes, _, signs = self.tokens.get("PREFIX", "(ov)@+").lstrip("(").partition(")")
        return dict(zip(signs, modes, strict=False))

    @property
    def kinds(self) -> dict[str, ModeKind]:
        """The kind of each channel mode by its letter; the kind says when the mode has a parameter."""
        groups = self.tokens.get("CHANMODES", "beI,k,l,imnpst").split(",")
        kinds = {letter: kind for kind, letters in zip(_KINDS, groups, strict=False) for letter in letters}
        return {**kinds, **dict.fromkeys(self.prefixes.values(), ModeKind.PREFIX)}

    @property
    def fold(self) -> Callable[[str], str]:
        """Function that maps names which are equal on this server (CASEMAPPING) to the same string."""
        match self.tokens.get("CASEMAPPING", "rfc1459"):
            case "rfc1459":
                return lambda name: fold(name).translate(_RFC1459)
            case "rfc1459-strict":
                return lambda name: fold(name).translate(_STRICT)
            case _:
                return fold

    def is_channel(self, target: str) -> bool:
        """Whether a target is a channel: its first character is in the server's CHANTYPES."""
        return target[:1] != "" and target[0] in (self.tokens.get("CHANTYPES") or "#&")

    def channel_of(self, target: str) -> str:
        """Return the channel of a target such as ``@#room`` (members of a rank only: STATUSMSG).

        Any other target, also a nick, is returned unchanged.
        """
        bare = target.lstrip(self.tokens.get("STATUSMSG", ""))
        return bare if self.is_channel(bare) else target
