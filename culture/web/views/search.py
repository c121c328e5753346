"""The page *Search*: messages by words or by meaning, in one room or in all."""

from starlette.responses import Response

from culture.protocol.names import fold
from culture.web.page import PageRequest
from culture.web.search import MAX_HITS, MEANING, WORDS, SearchResult, search_rooms
from culture.web.view import WebView, get

_LONGEST = 300
_MODES = {"words": WORDS, "meaning": MEANING}


async def _search(page: PageRequest) -> Response:
    text = page.query.get("q", "").strip()[:_LONGEST]
    room, how = page.query.get("room", "")[:_LONGEST], page.query.get("how", "words")
    irc = await page.irc()
    channels = sorted(irc.channels, key=fold)
    rooms = [room] if room else channels
    result = await search_rooms(irc, rooms, text, _MODES.get(how, WORDS)) if text else SearchResult(())
    how = how if how in _MODES else "words"
    return page.show("search.html", text=text, room=room, how=how, result=result, channels=channels, most=MAX_HITS)


VIEW = WebView(path="/search", routes=[get("/search", _search)])
