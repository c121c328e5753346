"""A process that appends lines to pages, as an agent would: read, add, write on top of that, again if need be."""

import json
import sys
from pathlib import Path

from culture.wiki.errors import Conflict, NoSuchPage
from culture.wiki.pages import Pages


def append(pages: Pages, name: str, line: str, author: str) -> None:
    """Add the line, once."""
    try:
        page = pages.read(name)
        text, base = page.text, page.revision
    except NoSuchPage:
        text, base = "", ""
    while True:
        try:
            pages.write(name, f"{text}{line}\n", base, author, line)
            return
        except Conflict as conflict:
            text, base = conflict.current, conflict.revision


def main() -> None:
    """``writer.py FOLDER NICK``: begins when told what, ``[[page, line], …]``; says each line that is written."""
    pages, author = Pages(Path(sys.argv[1])), sys.argv[2]
    print("ready", flush=True)
    for name, line in json.loads(sys.stdin.readline()):
        append(pages, name, line, author)
        print(line, flush=True)


main()
