"""Changes of the network: one function for each kind of event, called by ``Network.apply``.

A function makes its change and returns the users who shall see it.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from culture.server.core.changes import channels, users
from culture.server.core.state import User
from culture.server.events import (
    AccountSet,
    Arrived,
    AwaySet,
    ChannelRenamed,
    HostSet,
    Invited,
    Joined,
    Kicked,
    Left,
    Linked,
    MetadataSet,
    ModeSet,
    Parted,
    RealnameSet,
    Redacted,
    Renamed,
    TopicSet,
    Unlinked,
    UserModeSet,
    Walloped,
)

if TYPE_CHECKING:
    from culture.server.core.network import Network

Change = Callable[["Network", Any], Collection[User]]

CHANGES: Mapping[type, Change] = {
    Arrived: users.arrive,
    Left: users.leave,
    Renamed: users.rename,
    UserModeSet: users.set_modes,
    AwaySet: users.set_away,
    AccountSet: users.set_account,
    RealnameSet: users.set_realname,
    HostSet: users.set_host,
    MetadataSet: users.set_metadata,
    Walloped: users.hear_wallops,
    Linked: users.link,
    Unlinked: users.unlink,
    Joined: channels.join,
    Parted: channels.part,
    Kicked: channels.kick,
    TopicSet: channels.set_topic,
    ModeSet: channels.set_modes,
    Invited: channels.invite,
    ChannelRenamed: channels.rename,
    Redacted: channels.redact,
}
