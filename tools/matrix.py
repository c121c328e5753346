"""Writes the table of docs/clients/backends.md from what the tests of the backends saw."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "clients" / "backends.md"
BEGIN, END = "<!-- Written by `make matrix` from what the tests saw; do not edit. -->", "<!-- The end of it. -->"
NOT_SEEN = "?"
TESTS = ("tests/clients", "tests/proof")

COLUMNS = {
    "backend": "backend",
    "program": "program",
    "version": "version",
    "resume": "resume",
    "compact": "compact",
    "clear": "clear",
    "usage": "tokens",
    "cost": "dollars",
    "context": "context %",
    "whisper": "a whisper comes",
    "mcp": "MCP",
    "permission": "permission prompts",
}
KEY = ("backend", "program")

Row = dict[str, str]
Rows = dict[tuple[str, str], Row]


def collected(folder: Path) -> Rows:
    """What was noted in a folder, a row for each program."""
    lines = (line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines())
    return merged(json.loads(line) for line in lines)


def merged(facts: Iterable[Mapping[str, str]]) -> Rows:
    """Facts that belong to the same program as one row."""
    rows: Rows = {}
    for fact in facts:
        if unknown := fact.keys() - COLUMNS.keys():
            raise SystemExit(f"the table has no column for {', '.join(sorted(unknown))}")
        if KEY[0] in fact:
            rows.setdefault((fact["backend"], fact["program"]), {}).update(fact)
    return rows


def table(rows: Rows) -> str:
    """The rows as Markdown."""
    lines = [COLUMNS, *(row for _, row in sorted(rows.items()))]
    cells = [[line.get(key, NOT_SEEN) for key in COLUMNS] for line in lines]
    cells.insert(1, ["---"] * len(COLUMNS))
    return "\n".join(f"| {' | '.join(each)} |" for each in cells)


def written(page: str) -> Rows:
    """The rows of the table on the page."""
    return merged(_rows(_parts(page)[1]))


def _rows(text: str) -> Iterator[Row]:
    heading, _, *lines = [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.strip().splitlines()
    ]
    if heading != list(COLUMNS.values()):
        raise SystemExit("the table of the page has other columns; run `make matrix`")
    for line in lines:
        yield dict(zip(COLUMNS, line, strict=True))


def filled(page: str, rows: Rows) -> str:
    """The page with these rows; a program that was not tried this time keeps its own."""
    before, _, after = _parts(page)
    return f"{before}{BEGIN}\n{table({**written(page), **rows})}\n{END}{after}"


def _parts(page: str) -> tuple[str, str, str]:
    before, begin, rest = page.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the table")
    return before, inside, after


def _look(folder: Path) -> bool:
    """Run the tests that note what they see, those of `make proof` among them; whether all of them passed."""
    command = [sys.executable, "-m", "pytest", "-m", "matrix", "-n", "auto", "--dist", "loadfile", *TESTS]
    environment = {**os.environ, "CULTURE_SEEN": str(folder), "CULTURE_PROOF": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    """Run the tests and write the page: what a test noted that passed, also where others did not."""
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--seen", type=Path, metavar="FOLDER", help="what a run has noted already, under $CULTURE_SEEN")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        passed = options.seen is not None or _look(Path(folder))
        rows = collected(options.seen or Path(folder))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(rows)} programs were seen")
    if not passed:
        raise SystemExit("not every test passed: what those would have seen is not in the table")


if __name__ == "__main__":
    main()
