"""Every key of team.yaml is documented, and its default is what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

from culture.config.team import ROLES, Allowance, RoleConfig, TeamConfig, TeamLimits
from tests.test_documented import same, settings

PAGES = Path(__file__).resolve().parents[2] / "docs" / "team"
ROWS = dict(
    re.findall(r"^\| `([a-z_.<>]+)` \| (.+?) \|", (PAGES / "configuration.md").read_text(encoding="utf-8"), re.M)
)
# Those of agents.yaml, and documented there.
ELSEWHERE = ("supervisor.", "webhooks.", "sandbox.", "trust.")


def test_every_key_has_its_row() -> None:
    keys = [key.replace("roles.", "roles.<role>.") for key in settings(TeamConfig) if not key.startswith(ELSEWHERE)]
    same(sorted(keys), list(ROWS))


@pytest.mark.parametrize(
    "model", [TeamConfig, TeamLimits, Allowance, RoleConfig], ids=lambda model: str(model.__name__)
)
def test_a_default_is_what_the_page_says(model: Any) -> None:
    prefix = {TeamLimits: "limits.", Allowance: "budget.task.", RoleConfig: "roles.<role>."}.get(model, "")
    for name, field in model.model_fields.items():
        said = ROWS.get(f"{prefix}{name}")
        if said is None or field.is_required() or field.default is None:
            continue
        default = field.get_default(call_default_factory=True)
        if isinstance(default, float):
            assert said == f"`{default:g}s`"
        elif isinstance(default, str | int):
            assert said == f"`{default}`"


def test_every_role_has_its_row() -> None:
    table = re.findall(r"^\| `([a-z_]+)` \|", (PAGES / "roles.md").read_text(encoding="utf-8"), re.M)
    same(sorted(ROLES), table)
