"""The list of injected bugs fits the present code; one of them is found, and found again."""

import ast

from tests.simulation.injected import LIST, ROOT, look_for, read_bugs


def test_each_bug_is_one_replacement_in_the_present_code() -> None:
    bugs = read_bugs()
    assert len({bug.name for bug in bugs}) == len(bugs) == 20
    for bug in bugs:
        text = (ROOT / bug.path).read_text()
        assert text.count(bug.old) == 1, f"adjust {LIST.name} to the code: {bug.name}: {bug.path}"
        ast.parse(text.replace(bug.old, bug.new))


def test_a_bug_is_found_and_its_seed_finds_it_again() -> None:
    number, bug = next((at, bug) for at, bug in enumerate(read_bugs()) if bug.path.endswith("database.py"))
    found = look_for(number, bug, most=20, jobs=1)
    assert found.is_found, found
