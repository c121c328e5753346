"""The recorded run: which tests call which function, how long they take, and which to try for a mutation."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tools.mutants.operators import Mutation

Function = tuple[str, str]
"""A function by path and qualified name: lines move, so that a recording is good for some time."""


class Coverage:
    """Which tests call a function; only of tests that passed."""

    def __init__(self, calls: dict[Function, set[str]], seconds: dict[str, float]) -> None:
        self._calls = calls
        self.seconds = seconds
        self._modules: dict[str, set[str]] = defaultdict(set)
        self._breadth: dict[str, int] = defaultdict(int)
        for (path, _), tests in calls.items():
            self._modules[path] |= tests
            for test in tests:
                self._breadth[test] += 1

    @classmethod
    def read(cls, recording: Path) -> "Coverage":
        """Read the notes that the recorder left in a folder."""
        seconds: dict[str, float] = defaultdict(float)
        failed = set()
        for file in recording.glob("*.outcomes"):
            for line in file.read_text().splitlines():
                test, outcome, duration = line.rsplit("\t", 2)
                seconds[test] += float(duration)
                if outcome != "passed":
                    failed.add(test)
        passed = seconds.keys() - failed
        calls: dict[Function, set[str]] = defaultdict(set)
        for file in recording.glob("*.calls"):
            for line in file.read_text(errors="replace").split("\n")[:-1]:  # the last may be cut off
                words = line.rsplit("\t", 2)
                if len(words) == 3 and words[0] in passed:
                    calls[words[1], words[2]].add(words[0])
        return cls(calls, {test: seconds[test] for test in passed})

    @classmethod
    def load(cls, file: Path) -> "Coverage":
        """Load what ``save`` wrote."""
        data = json.loads(file.read_text())
        tests = data["tests"]
        calls = {(path, name): {tests[number] for number in numbers} for path, name, numbers in data["calls"]}
        return cls(calls, dict(zip(tests, data["seconds"], strict=True)))

    def save(self, file: Path) -> None:
        """Write everything into one file."""
        tests = sorted(self.seconds)
        numbers = {test: number for number, test in enumerate(tests)}
        calls = [[path, name, sorted(numbers[test] for test in each)] for (path, name), each in self._calls.items()]
        file.write_text(json.dumps({"tests": tests, "seconds": [self.seconds[test] for test in tests], "calls": calls}))

    def tests_for(self, mutation: Mutation, budget: float) -> list[str]:
        """Return the tests to try, the most specific first, of together at most ``budget`` seconds.

        Without a test that calls the function, or for a change outside of functions, they are those of the module.
        """
        tests: Iterable[str] = self._calls.get((mutation.path, mutation.function), ())
        if not mutation.function or not tests:
            tests = self._modules.get(mutation.path, ())
        mirrored = _mirrored(mutation.path)
        ranked = sorted(
            tests, key=lambda test: (-_common(test, mirrored), self._breadth[test] * (0.1 + self.seconds[test]), test)
        )
        chosen: list[str] = []
        total = 0.0
        for test in ranked:
            if total + self.seconds[test] <= budget or not chosen:
                chosen.append(test)
                total += self.seconds[test] + 0.005
        return chosen


def _mirrored(path: str) -> list[str]:
    """Return the folders of the tests of a module: ``culture/lib/git.py`` has its tests in ``tests/lib``."""
    return ["tests", *Path(path).parts[1:-1]]


def _common(test: str, folders: list[str]) -> int:
    """Return how many folders a test shares with ``folders`` from the beginning."""
    count = 0
    for one, other in zip(Path(test.partition("::")[0]).parts[:-1], folders, strict=False):
        if one != other:
            break
        count += 1
    return count
