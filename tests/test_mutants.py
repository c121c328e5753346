"""`make mutants`: which changes it makes, which tests it tries for one, and how it counts."""

from pathlib import Path

import pytest

from tools.mutants.__main__ import Outcome, package_of, sample, summary
from tools.mutants.coverage import Coverage
from tools.mutants.operators import Mutation, mutations


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("return a < b", ["return a <= b"]),
        ("return a and not b", ["return a or not b", "return a and b"]),
        ("if a: x()", ["if not (a): x()", "if a: pass"]),
        ("return a + 1", ["return a - 1", "return a + 2"]),
        ("n += b", ["n -= b"]),
        ("return True", ["return False"]),
        ("raise Gone", ["pass"]),
        ("a.b = c", ["pass"]),
        ("await a.b(c)", ["pass"]),
    ],
)
def test_a_line_is_changed_in_each_of_these_ways(line: str, changed: list[str]) -> None:
    source = f"async def work(a, b, c, n, x):\n    {line}\n"
    assert [each.applied(source).splitlines()[1].strip() for each in mutations("a.py", source)] == changed


@pytest.mark.parametrize(
    "line",
    [
        'log.info("begun")',
        '"""Say nothing."""',
        'x: "dict[str, 1]"',
        "n = 4096",
        'return f"{a + b}"',
        'return a + ", "',
        "raise NotImplementedError",
    ],
)
def test_what_tells_nothing_of_the_behaviour_is_left_as_it_is(line: str) -> None:
    assert mutations("a.py", f"def work(a, b):\n    {line}\n") == []


def test_a_change_knows_the_function_around_it() -> None:
    source = "LIMIT = 2\n\n\nclass Door:\n    @cached\n    def open(self):\n        return not self.shut\n"
    (change,) = mutations("a.py", source)
    assert (change.function, change.line) == ("Door.open", 7)
    assert change.id == "a.py:7: not -> "


def test_text_before_a_change_may_have_letters_of_several_bytes() -> None:
    (change,) = mutations("a.py", "def work(a):\n    return 'äöü', not a\n")
    assert change.applied("def work(a):\n    return 'äöü', not a\n") == "def work(a):\n    return 'äöü', a\n"


def test_each_package_gives_as_many_and_a_seed_chooses_them() -> None:
    one, same, other = sample(36, 1), sample(36, 1), sample(36, 2)
    assert [each.id for each in one] == [each.id for each in same] != [each.id for each in other]
    packages = [package_of(each.path) for each in one]
    assert {packages.count(each) for each in packages} == {2}
    assert {"clients.shared", "clients.backends", "federation", "protocol", "runtime", "__main__"} <= {*packages}


def _mutation(path: str = "culture/lib/git.py", function: str = "Git.run") -> Mutation:
    return Mutation(path, 12, 0, 1, "not", "", function)


def _coverage(tmp_path: Path) -> Coverage:
    wide = [(("culture/lib/files.py", f"work{number}"), {"tests/cli/test_up.py::test_up"}) for number in range(9)]
    coverage = Coverage(
        {
            ("culture/lib/git.py", "Git.run"): {
                "tests/lib/test_git.py::test_run",
                "tests/cli/test_up.py::test_up",
                "tests/wiki/test_pages.py::test_page",
            },
            ("culture/lib/git.py", "Git.end"): {"tests/lib/test_git.py::test_end"},
            **dict(wide),
        },
        {
            "tests/lib/test_git.py::test_run": 1.0,
            "tests/lib/test_git.py::test_end": 1.0,
            "tests/cli/test_up.py::test_up": 3.0,
            "tests/wiki/test_pages.py::test_page": 1.0,
        },
    )
    coverage.save(tmp_path / "coverage.json")
    return Coverage.load(tmp_path / "coverage.json")


def test_the_most_specific_tests_of_a_function_are_tried_first(tmp_path: Path) -> None:
    tests = _coverage(tmp_path).tests_for(_mutation(), 100)
    assert tests == [
        "tests/lib/test_git.py::test_run",
        "tests/wiki/test_pages.py::test_page",
        "tests/cli/test_up.py::test_up",
    ]
    assert _coverage(tmp_path).tests_for(_mutation(), 1.5) == tests[:1]


def test_a_change_outside_of_functions_is_tried_with_the_tests_of_its_module(tmp_path: Path) -> None:
    assert set(_coverage(tmp_path).tests_for(_mutation(function=""), 2.5)) == {
        "tests/lib/test_git.py::test_run",
        "tests/lib/test_git.py::test_end",
    }
    assert _coverage(tmp_path).tests_for(_mutation("culture/lib/http.py"), 100) == []


def test_calls_of_tests_that_failed_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "1.outcomes").write_text("a::one\tpassed\t0.5\na::one\tpassed\t0.5\na::two\tfailed\t1.0\n")
    (tmp_path / "2.calls").write_text(
        "a::one\tculture/a.py\tbegin\na::two\tculture/a.py\tbegin\na::one\tculture/a.py\tbeg"
    )
    coverage = Coverage.read(tmp_path)
    assert coverage.seconds == {"a::one": 1.0}
    assert coverage.tests_for(_mutation("culture/a.py", "begin"), 9) == ["a::one"]


def test_what_equals_the_program_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tools.mutants.__main__.judged", lambda: {"a:1": ("equivalent", "a cache"), "a:2": ("left", "-")}
    )
    outcomes = [
        Outcome("a:0", "lib", "killed", "test", 1.0),
        Outcome("a:1", "lib", "survived", "", 1.0),
        Outcome("a:2", "lib", "untested", "", 1.0),
        Outcome("a:3", "web", "timeout", "", 1.0),
    ]
    figures = summary(outcomes)
    assert (figures["score"], figures["packages"]["lib"]["score"], figures["packages"]["web"]["score"]) == (
        0.667,
        0.5,
        1.0,
    )
    assert figures["survivors"] == {"a:1": "equivalent: a cache", "a:2": "left: -"}
