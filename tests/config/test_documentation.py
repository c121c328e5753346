"""What the pages say about keys and defaults is what the models say."""

import re
from pathlib import Path

from pydantic import BaseModel

from culture.config.agents import AgentsConfig, Rules
from culture.config.introspect import keys
from culture.config.load import load_agents, load_server
from culture.config.model import NEEDS_RESTART, ServerConfig
from culture.config.values import seconds
from tests.config.conftest import Write

DOCS = Path(__file__).parents[2] / "docs"
# Words that stand for a default which is not one value.
WORDS = {"required", "not set", "none", "empty", "no limit", "all five", "a majority", "the backend's own"}


def rows(page: str) -> dict[str, list[str]]:
    """Key → the other cells of its row."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| `")]
    return {cell[0].strip("`"): cell[1:] for cell in cells if re.fullmatch(r"`[a-z_0-9.\[\]]+`", cell[0])}


def default(model: type[BaseModel], key: str) -> str:
    """What a page should say of a key's default."""
    block: object = model()
    for step in key.split("."):
        if "[]" in step or block is None or isinstance(block, dict):
            return ""
        block = getattr(block, step)
    if isinstance(block, bool):
        return str(block).lower()
    return ", ".join(block) if isinstance(block, tuple) else f"{block:g}" if isinstance(block, float) else str(block)


def said(cell: str) -> str:
    """What a cell says of a default, a duration in seconds."""
    plain = cell.replace("`", "")
    return f"{seconds(plain):g}" if re.fullmatch(r"\d+(ms|s|m|h|d)", plain) else plain


def test_every_key_of_agents_yaml_is_documented_and_no_other() -> None:
    repeated = tuple(f"agents[].{name}" for name in Rules.model_fields)
    existing = {key for key in keys(AgentsConfig) if not key.startswith(repeated)}
    assert set(rows("clients/configuration.md")) == existing


def test_every_key_of_culture_yaml_is_documented_and_no_other() -> None:
    assert set(rows("server/configuration.md")) == set(keys(ServerConfig))


def test_the_defaults_on_the_page_are_the_real_ones() -> None:
    by_login = "budget.resume_after_limit"  # it depends on what the provider is paid for
    for page, model in (("server/configuration.md", ServerConfig), ("clients/configuration.md", AgentsConfig)):
        for key, (cell, *_) in rows(page).items():
            real = default(model, key)
            if (
                real
                and cell not in WORDS
                and key not in ("name", "data_dir", "accounts_file", "logger.folder", "audit.folder", by_login)
            ):
                assert said(cell) == real, key


def test_the_page_says_what_needs_a_restart() -> None:
    page = rows("server/configuration.md")
    restart = {key.partition("[]")[0] for key, cells in page.items() if cells[-1] == "restart"}
    # Of some blocks every key needs one.
    assert {key if key in NEEDS_RESTART else key.partition(".")[0] for key in restart} == NEEDS_RESTART
    assert not [key for key in page.keys() - restart if key.partition(".")[0] in NEEDS_RESTART and "[]" not in key]


def sample(page: str) -> str:
    found = re.search(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def test_the_samples_on_the_pages_load(write: Write) -> None:
    assert load_server(write(sample("server/configuration.md"))).config.name == "spark"
    assert load_agents(write(sample("clients/configuration.md"))).config.agent("spark-culture")
