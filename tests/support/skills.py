"""Packages with skills, laid on the path as pip would lay them."""

from collections.abc import Mapping
from pathlib import Path

from culture.config.skills import AuditConfig, HistoryConfig, LedgerConfig, UrlIndexConfig

NO_SKILLS = {
    "history": HistoryConfig(enabled=False),
    "urlindex": UrlIndexConfig(enabled=False),
    "ledger": LedgerConfig(enabled=False),
    "audit": AuditConfig(enabled=False),
}
"""Settings of a server on which only the skills of the test run."""


def install(folder: Path, package: str, skills: Mapping[str, str]) -> Path:
    """Lay a package with these entry points (``name="module:Class"``) into a folder that is then put on the path."""
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in skills.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[culture.skills]", *lines, ""]))
    return folder
