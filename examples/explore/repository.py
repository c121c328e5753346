"""The repository of the example: a branch and a worktree for each agent, and a page for each commit."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

SOURCE = Path(__file__).with_name("repository")
_COMMIT = re.compile(r"/commit/([0-9a-f]{40})")


def made(folder: Path, names: Sequence[str]) -> Path:
    """A repository with one commit, and beside it a worktree for each name, on a branch of that name."""
    main = folder / "main"
    shutil.copytree(SOURCE, main)
    (main / ".gitignore").write_text("__pycache__/\n.scripted/\n", encoding="utf-8")
    for script in ("share", "take-over"):
        (main / script).chmod(0o755)
    git(main, "init", "--quiet", "--initial-branch=main")
    _sign(main, "ori")
    git(main, "add", ".")
    git(main, "commit", "--quiet", "--message", "Count words, slowly")
    git(main, "config", "extensions.worktreeConfig", "true")
    for name in names:
        git(main, "worktree", "add", "--quiet", "-b", name, str(folder / name))
        _sign(folder / name, name, "--worktree")
    return main


def git(folder: Path, *words: str) -> str:
    """What git says."""
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def pages(repository: Path) -> Iterator[str]:
    """A page for each commit, as a forge has them; the address of the repository."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = _COMMIT.fullmatch(self.path)
            text = git(repository, "show", asked[1]) if asked else "no such page\n"
            self.send_response(200 if asked else 404)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            git(repository, "config", "example.links", address)
            yield address
        finally:
            server.shutdown()
            thread.join()


def _sign(folder: Path, name: str, *scope: str) -> None:
    git(folder, "config", *scope, "user.name", name)
    git(folder, "config", *scope, "user.email", f"{name}@example.org")
