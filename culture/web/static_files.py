"""Files that browsers may keep: style, scripts, icons. Their addresses change with their contents."""

import hashlib
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

_HERE = Path(__file__).parent
FOLDERS = {"static": _HERE / "static", "vendor": _HERE / "vendor"}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
_FOREVER = "public, max-age=31536000, immutable"
_BRIEFLY = "public, max-age=300"


@cache
def version(folder: str, name: str) -> str:
    """A few letters that are others once the file is another."""
    file = FOLDERS[folder] / name
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else ""


def address(folder: str, name: str) -> str:
    """Where browsers find a file of this version."""
    return f"/{folder}/{name}?v={version(folder, name)}"


def _answer(folder: str, name: str, keeps: str) -> Response:
    file = FOLDERS[folder] / name
    if "/" in name or name.startswith(".") or file.suffix not in _TYPES or not file.is_file():
        raise HTTPException(404)
    return FileResponse(file, media_type=_TYPES[file.suffix], headers={"Cache-Control": keeps})


async def _file(request: Request) -> Response:
    folder, name = request.url.path.split("/")[1], request.path_params["name"]
    is_current = request.query_params.get("v") == version(folder, name)
    return _answer(folder, name, _FOREVER if is_current else _BRIEFLY)


async def _manifest(_request: Request) -> Response:
    return _answer("static", "manifest.webmanifest", _BRIEFLY)


async def _worker(_request: Request) -> Response:
    return _answer("static", "sw.js", "no-cache")


async def _icon(_request: Request) -> Response:
    return _answer("static", "icon.svg", _BRIEFLY)


def files() -> list[Route]:
    """The routes of all files; the service worker is at the top, as it serves the whole page."""
    return [
        Route("/static/{name}", _file),
        Route("/vendor/{name}", _file),
        Route("/manifest.webmanifest", _manifest),
        Route("/sw.js", _worker),
        Route("/favicon.ico", _icon),
    ]
