"""Looking for what was said."""

from starlette.responses import Response

from culture.protocol.names import fold
from culture.web.page import PageRequest
from culture.web.search import MEANING, MOST, WORDS, SearchResult, find
from culture.web.view import WebView, shown

_LONGEST = 300
_HOW = {"words": WORDS, "meaning": MEANING}


async def _search(page: PageRequest) -> Response:
    text = page.query.get("q", "").strip()[:_LONGEST]
    room, how = page.query.get("room", "")[:_LONGEST], page.query.get("how", "words")
    irc = await page.irc()
    channels = sorted(irc.channels, key=fold)
    wanted = [room] if room else channels
    found = await find(irc, wanted, text, _HOW.get(how, WORDS)) if text else SearchResult(())
    how = how if how in _HOW else "words"
    return page.show("search.html", text=text, room=room, how=how, found=found, channels=channels, most=MOST)


VIEW = WebView(path="/search", routes=[shown("/search", _search)])
