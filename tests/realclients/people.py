"""Two people, each with a client of their own."""

from typing import NamedTuple

from tests.realclients.irssi import Irssi
from tests.realclients.weechat import Weechat

GENERAL = "#general"
TEXT = "héllo wörld 🎉 日本語"


class Pair(NamedTuple):
    """The operator of ``#general`` at weechat as spark-wendy, a plain member at irssi as spark-iris."""

    wendy: Weechat
    iris: Irssi
