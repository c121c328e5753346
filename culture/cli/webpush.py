"""Waking a phone: one post to a topic of ntfy."""

import ipaddress
import json

from culture.clients.shared.webhook.connecting import Ways
from culture.clients.shared.webhook.formats import split_topic
from culture.clients.shared.webhook.posting import NotPosted, Post
from culture.clients.shared.webhook.posting import post as posted
from culture.clients.shared.webhook.targets import Target, TargetRefused
from culture.web.push import NotPushed, Push

_TIMEOUT = 15.0
# Whoever runs the page names the address in culture.yaml: it may be on this machine or beside it.
_ANYWHERE = tuple(map(ipaddress.ip_network, ("0.0.0.0/0", "::/0")))


async def post(address: str, push: Push) -> None:
    """Post it; ``NotPushed`` says why it failed, and names nothing secret."""
    try:
        target, topic = split_topic(Target.parse(address))
        body = json.dumps({"topic": topic, "title": push.title, "message": push.text, "click": push.link}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "culture"}
        await posted(Post(target, headers, body, Ways(listed=_ANYWHERE)), _TIMEOUT)
    except (NotPosted, TargetRefused) as failure:
        raise NotPushed(str(failure)) from None
