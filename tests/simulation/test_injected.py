"""The list of injected bugs fits the present code; one of them is found, and found again."""

import ast

import pytest

from tests.simulation.injected import ROOT, list_file, look_for, read_bugs


@pytest.mark.parametrize(("name", "count"), [("injected", 20), ("hostile", 17)])
def test_each_bug_is_one_replacement_in_the_present_code(name: str, count: int) -> None:
    bugs = read_bugs(name)
    assert len({bug.name for bug in bugs}) == len(bugs) == count
    for bug in bugs:
        text = (ROOT / bug.path).read_text()
        assert text.count(bug.old) == 1, f"adjust {list_file(name).name} to the code: {bug.name}: {bug.path}"
        ast.parse(text.replace(bug.old, bug.new))


def test_a_bug_is_found_and_its_seed_finds_it_again() -> None:
    number, bug = next((at, bug) for at, bug in enumerate(read_bugs()) if bug.path.endswith("database.py"))
    found = look_for(number, bug, most=20, jobs=1)
    assert found.is_found, found
