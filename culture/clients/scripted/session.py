"""A scripted agent's session: a JSON-lines file of prompts and answers, resumable."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = ".scripted"
WINDOW = 100_000
"""Size of the simulated context window, in tokens."""
_COMPACTED_SHARE = 0.1
_LETTERS_PER_TOKEN = 4
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass
class ScriptedSession:
    """The conversation of a scripted agent: counts prompts and tokens.

    Every change is written to the session's file before it counts.
    """

    folder: Path
    id: str = field(default_factory=lambda: os.urandom(16).hex())
    count: int = 0
    """Number of prompts so far."""
    tokens: int = 0
    """Tokens in the simulated context."""
    stated_pct: float | None = None
    """Context percentage that the playbook set, if any."""

    @classmethod
    def resumed(cls, folder: Path, session_id: str) -> "ScriptedSession | None":
        """Return the session with this id, read from its file; None if it does not exist."""
        if not _ID.fullmatch(session_id) or not (folder / f"{session_id}.jsonl").is_file():
            return None
        session = cls(folder, session_id)
        *lines, torn = (folder / f"{session_id}.jsonl").read_text(encoding="utf-8").split("\n")
        for line in lines:
            session._remember(line)
        if torn:
            # A kill cut off the last line; end it.
            session._append("")
        return session

    @classmethod
    def begun(cls, folder: Path) -> "ScriptedSession":
        """Start a new session, write its file, and return it."""
        session = cls(folder)
        session._write({"tokens": 0})
        return session

    @property
    def context_pct(self) -> float:
        """Return how much of the context is in use, in %, as stated by a step or as counted."""
        return self.stated_pct if self.stated_pct is not None else round(min(100.0, 100 * self.tokens / WINDOW), 1)

    def prompted(self, text: str) -> None:
        """Record a prompt in the session's file."""
        self._write({"prompt": text, "tokens": len(text) // _LETTERS_PER_TOKEN + 1})

    def answered(self, text: str, stated_pct: float | None) -> int:
        """Record an answer in the session's file; returns its tokens.

        ``stated_pct``: how full the context is, in %, if a step says so.
        """
        tokens = len(text) // _LETTERS_PER_TOKEN + 1
        self._write({"answer": text, "tokens": tokens, "context_pct": stated_pct})
        return tokens

    def compact(self) -> None:
        """Record that the context was shortened to a tenth."""
        self._write({"compacted": int(self.tokens * _COMPACTED_SHARE)})

    def cleared(self) -> "ScriptedSession":
        """Start a new session in the same folder, and return it."""
        return ScriptedSession.begun(self.folder)

    def _write(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # Prompts are private and no part of the project: keep them out of git.
        ignored = self.folder / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")
        self._append(line)
        self._remember(line)

    def _append(self, line: str) -> None:
        descriptor = os.open(self.folder / f"{self.id}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{line}\n".encode())
        finally:
            os.close(descriptor)

    def _remember(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            # A line that a kill cut off.
            return
        if "compacted" in entry:
            self.tokens, self.stated_pct = entry["compacted"], None
            return
        self.count += "prompt" in entry
        self.tokens += entry["tokens"]
        stated = entry.get("context_pct")
        self.stated_pct = self.stated_pct if stated is None else stated
