"""What a team of Claude Codes does, from a person's wish to the end of a task.

Its model knows nothing by itself: whoever speaks to somebody says in which file it stands what they do about it. What
of ours it uses there, commands, tools and forms of lines, has to stand in the request (`tests.support.model.told`).
"""

import json
from pathlib import Path

from culture.orchestrator.prompts import HANDOFF, SHIPPED
from culture.wiki.names import decision

NAMES = EM, MANAGER, IMPLEMENTER, *_ = ("Harper", "Ada", "Ben", "Cleo", "Dan", "Eve", "Fay")
PROJECT, STANDUP, WORK = "#project-demo", "#standup-demo", "#work-demo-1"
PAGE = "handoffs/demo-1-1"
DECISION = decision("language")
SKILL = "python3 -P -m culture.clients.shared.skill.irc_client"
_PLAN = """\
revision=$(culture wiki read plans/demo-1 2>&1 >/dev/null | sed -n 's/.* revision \\([0-9a-f]*\\).*/\\1/p')
{ culture wiki read plans/demo-1; echo '1. greeting.py and its test. 2. Run it. 3. Groucho reviews.'; } |
culture wiki write plans/demo-1 --base $revision -m 'the plan'"""
_EDIT = """\
printf 'def greet():\\n    return "hello"\\n' > greeting.py
printf 'import unittest\\n\\nfrom greeting import greet\\n\\n\\nclass T(unittest.TestCase):\\n' > test_greeting.py
printf '    def test(self):\\n        self.assertEqual(greet(), "hello")\\n' >> test_greeting.py
git add greeting.py test_greeting.py && git commit -q -m 'a greeting'"""
_NEARLY_FULL = 155_000
"""Tokens of the 167,000 that Claude Code holds before it shortens itself."""


class Story:
    """The files in a folder, one for each thing that somebody does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    @property
    def handoff_prompt(self) -> str:
        """The shipped words, and what is done about them."""
        words = (SHIPPED / f"{HANDOFF}.md").read_text(encoding="utf-8")
        return f"{words} [[script {self._folder}/hand-over]]"

    def begin(self, shift: bool = False) -> str:
        """Write all of it; what the person says first. With a shift, the manager's context fills up at the tests."""
        owner = NAMES[3] if shift else MANAGER
        self._act(
            "wanted",
            self._page("sprint-state", "# Sprint\n\nWe greet.\n"),
            self._page(DECISION, "# We greet in English\n\nThe PM wants it so.\n"),
            self._say(STANDUP, "TASK: a greeting with a test", "plan"),
            "[[say I have given it out.]]",
        )
        self._act(
            "plan",
            f"[[bash {_PLAN}]]",
            self._say(STANDUP, "plans/demo-1 has the plan."),
            self._say(WORK, "TASK: implementer: greeting.py and test_greeting.py", "implement"),
        )
        self._act("implement", f"[[bash {_EDIT}]]", self._say(WORK, f"@spark-{MANAGER} it is committed", "implemented"))
        if shift:
            self._act(
                "implemented",
                f"[[usage {_NEARLY_FULL} 10 0 0]]",
                self._say(WORK, "Now the tests; but I can hardly think any more."),
            )
            self._act(
                "hand-over",
                self._page(PAGE, "# Hand-off\n\ngreeting.py is committed; the tests come next.\n"),
                self._say(WORK, "I hand over."),
                self._say(STANDUP, "I hand demo-1 over."),
                f"[[bash cp {self._folder}/take-over {self._folder}/plan]]",
            )
            self._act(
                "take-over",
                f"[[call mcp__dev-wiki__wiki_read {json.dumps({'page': PAGE})}]]",
                self._say(WORK, f"I am {owner}, and go on with the tests."),
                self._spawn("test_runner", "python3 -B -m unittest", "test"),
            )
        else:
            self._act("implemented", self._spawn("test_runner", "python3 -B -m unittest", "test"))
        self._act(
            "test",
            f"[[bash python3 -B -m unittest 2> {self._folder}/verdict]]",
            self._say(WORK, f"@spark-{owner} $(tail -n 1 {self._folder}/verdict)", "tested"),
        )
        self._act("tested", self._say(WORK, "TASK: groucho: main and this branch", "review"))
        self._act(
            "review",
            f"[[bash git diff main... > {self._folder}/seen]]",
            self._say(WORK, f"@spark-{owner} it does what was asked", "reviewed"),
        )
        self._act("reviewed", self._say(STANDUP, "TASK: demo-1 done: it greets", "done"))
        self._act("done", "[[say demo-1 is done, and yours to merge.]]")
        return f"I would like us to greet people. [[script {self._folder}/wanted]]"

    def file(self, name: str) -> str:
        """What somebody left there."""
        return (self._folder / name).read_text(encoding="utf-8")

    def _act(self, name: str, *steps: str) -> None:
        (self._folder / name).write_text("\n".join(steps), encoding="utf-8")

    def _words(self, text: str, then: str) -> str:
        """For the shell, in which a step can be named without ending this one."""
        return f'"{text} [""[script {self._folder}/{then}]""]"' if then else f'"{text}"'

    def _say(self, channel: str, text: str, then: str = "") -> str:
        return f'[[bash {SKILL} send "{channel}" {self._words(text, then)}]]'

    def _spawn(self, role: str, text: str, then: str) -> str:
        return f"[[bash {SKILL} spawn {role} {self._words(text, then)}]]"

    def _page(self, page: str, text: str) -> str:
        return f"[[call mcp__dev-wiki__wiki_write {json.dumps({'page': page, 'text': text, 'base_revision': ''})}]]"
