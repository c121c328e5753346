"""A scripted agent's session: what it was asked and answered, in a file from which it can be taken up again."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = ".scripted"
WINDOW = 100_000
"""The context it pretends to have, in tokens."""
_KEPT_BY_COMPACTING = 0.1
_LETTERS_PER_TOKEN = 4
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass
class ScriptedSession:
    """Counts what passes through; every change is a line of its file before it is answered."""

    folder: Path
    id: str = field(default_factory=lambda: os.urandom(16).hex())
    count: int = 0
    """How many prompts it has seen."""
    tokens: int = 0
    """What its context holds."""
    stated_pct: float | None = None
    """How full the playbook says it is."""

    @classmethod
    def resumed(cls, folder: Path, session_id: str) -> "ScriptedSession | None":
        """The session of that id; None when there is no such thing."""
        if not _ID.fullmatch(session_id) or not (folder / f"{session_id}.jsonl").is_file():
            return None
        session = cls(folder, session_id)
        *lines, torn = (folder / f"{session_id}.jsonl").read_text(encoding="utf-8").split("\n")
        for line in lines:
            session._remember(line)
        if torn:
            # It was being written when the agent was killed; what comes next begins a line of its own.
            session._append("")
        return session

    @classmethod
    def begun(cls, folder: Path) -> "ScriptedSession":
        """A new session, which can be taken up again from the first moment."""
        session = cls(folder)
        session._write({"tokens": 0})
        return session

    @property
    def context_pct(self) -> float:
        """How full the context is."""
        return self.stated_pct if self.stated_pct is not None else round(min(100.0, 100 * self.tokens / WINDOW), 1)

    def prompted(self, text: str) -> None:
        """It was given a prompt."""
        self._write({"prompt": text, "tokens": len(text) // _LETTERS_PER_TOKEN + 1})

    def answered(self, text: str, stated_pct: float | None) -> int:
        """It gave an answer; the tokens of that."""
        tokens = len(text) // _LETTERS_PER_TOKEN + 1
        self._write({"answer": text, "tokens": tokens, "context_pct": stated_pct})
        return tokens

    def compact(self) -> None:
        """Shorten the context."""
        self._write({"compacted": int(self.tokens * _KEPT_BY_COMPACTING)})

    def cleared(self) -> "ScriptedSession":
        """A new one in its place."""
        return ScriptedSession.begun(self.folder)

    def _write(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        # What was said to an agent is nobody else's business, and no part of the project it works in.
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
            # A line that was torn by a kill.
            return
        if "compacted" in entry:
            self.tokens, self.stated_pct = entry["compacted"], None
            return
        self.count += "prompt" in entry
        self.tokens += entry["tokens"]
        stated = entry.get("context_pct")
        self.stated_pct = self.stated_pct if stated is None else stated
