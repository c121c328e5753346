"""Serve style, scripts and icons, under cacheable addresses that have the file's hash."""

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
    """Return the first 12 hex digits of a static file's SHA-256; "" if there is no such file."""
    file = FOLDERS[folder] / name
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else ""


def address(folder: str, name: str) -> str:
    """Return the URL path of a static file, with its version as the query parameter ``v``."""
    return f"/{folder}/{name}?v={version(folder, name)}"


def _response(folder: str, name: str, cache_control: str) -> Response:
    file = FOLDERS[folder] / name
    if "/" in name or name.startswith(".") or file.suffix not in _TYPES or not file.is_file():
        raise HTTPException(404)
    return FileResponse(file, media_type=_TYPES[file.suffix], headers={"Cache-Control": cache_control})


async def _file(request: Request) -> Response:
    folder, name = request.url.path.split("/")[1], request.path_params["name"]
    is_current = request.query_params.get("v") == version(folder, name)
    return _response(folder, name, _FOREVER if is_current else _BRIEFLY)


async def _manifest(_request: Request) -> Response:
    return _response("static", "manifest.webmanifest", _BRIEFLY)


async def _service_worker(_request: Request) -> Response:
    return _response("static", "sw.js", "no-cache")


async def _icon(_request: Request) -> Response:
    return _response("static", "icon.svg", _BRIEFLY)


def file_routes() -> list[Route]:
    """Return the routes of all static files.

    The service worker's route is at the root, since its path limits the pages for which it works.
    """
    return [
        Route("/static/{name}", _file),
        Route("/vendor/{name}", _file),
        Route("/manifest.webmanifest", _manifest),
        Route("/sw.js", _service_worker),
        Route("/favicon.ico", _icon),
    ]
