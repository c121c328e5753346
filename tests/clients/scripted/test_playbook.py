"""Playbooks: which rule is followed, and what is said of mistakes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.scripted import steps
from culture.clients.scripted.agent_runner import ScriptedRunner
from culture.clients.scripted.playbook import BUILT_IN, NAMED, read
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.turn import RunnerSetup


def write(folder: Path, text: str) -> Path:
    path = folder / "playbook.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_first_rule_that_matches_is_followed(tmp_path: Path) -> None:
    playbook = read(
        write(tmp_path, "rules:\n- when: ab\n  steps: [say: one]\n- when: a\n  steps: [say: two]\ndefault: [say: none]")
    )
    assert [playbook.chosen(prompt)[1] for prompt in ("xABx", "cab a", "a", "x")] == [
        (steps.SayStep("one"),),
        (steps.SayStep("one"),),
        (steps.SayStep("two"),),
        (steps.SayStep("none"),),
    ]


def test_without_a_default_nothing_is_done(tmp_path: Path) -> None:
    assert read(write(tmp_path, "rules: []")).chosen("anything") == (None, ())


def test_steps_are_read_with_all_they_can_have(tmp_path: Path) -> None:
    text = """
default:
  - ask: {to: '#a', question: q}
  - ask: {to: '#a', question: q, timeout: 2m, options: yes/no}
  - run: ls
  - run: {command: ls, timeout: 500ms}
  - wait: 2
  - wait: {until: there}
  - usage: {tokens: 7}
  - loop: {times: 2, steps: [{read: '#a'}]}
"""
    assert read(write(tmp_path, text)).default == (
        steps.AskStep("#a", "q", 300.0),
        steps.AskStep("#a", "q", 120.0, "yes/no"),
        steps.RunStep("ls", 60.0),
        steps.RunStep("ls", 0.5),
        steps.WaitStep(2),
        steps.WaitStep(30.0, "there"),
        steps.UsageStep(tokens=7),
        steps.LoopStep(2, (steps.ReadStep("#a"),)),
    )


MISTAKES = [
    ("", "", "says nothing (it needs rules: or default:)"),
    ("- when: x", ":1", "expected keys and values"),
    ("rules:\n  - when: [", ":2", "not valid YAML"),
    ("rulez: []", ":1", "rulez: unknown key (did you mean rules?)"),
    ("rules: {}", ":1", "rules: expected a list of rules"),
    ("rules:\n- when: x", ":2", "rules[0]: steps is missing (add steps: …)"),
    ("rules:\n- steps: [say: x]\n  whem: y", ":3", "rules[0].whem: unknown key (did you mean when?)"),
    ("rules:\n- when: a(b\n  steps: [say: x]", ":2", "rules[0].when: no regular expression"),
    ("rules:\n- when: 7\n  steps: [say: x]", ":2", "rules[0].when: expected text (put it in quotes)"),
    ("default: say", ":1", "default: expected a list of steps"),
    ("default: []", ":1", "default: expected a list of steps"),
    ("default:\n- say", ":2", "default[0]: expected one step"),
    ("default:\n- say: a\n  run: b", ":2", "default[0]: expected one step"),
    ("default:\n- sya: a", ":2", "default[0].sya: 'sya' is no step (did you mean say?)"),
    ("default:\n- dance: a", ":2", "'dance' is no step (there are say, think,"),
    ("default:\n- say: 5", ":2", "default[0].say: expected text (put it in quotes)"),
    ("default:\n- say: '{sendr}'", ":2", "{sendr} is nothing that can be filled in (did you mean {sender}?)"),
    ("default:\n- say: '{1}'", ":2", "{1} is nothing that can be filled in (write {{1}} if the braces are meant)"),
    ("default:\n- send: hello", ":2", "default[0].send: expected text, to"),
    ("default:\n- send: {to: x}", ":2", "default[0].send: text is missing"),
    ("default:\n- wait: soon", ":2", "'soon' is no duration (write 500ms, 2s or 5m)"),
    ("default:\n- wait: 2h", ":2", "must be at most 3600 seconds"),
    ("default:\n- wait: -1", ":2", "must be from 0 to 3600"),
    ("default:\n- wait: true", ":2", "expected a number"),
    ("default:\n- usage: {tokens: 1.5}", ":2", "expected a whole number"),
    ("default:\n- usage: {context_pct: 101}", ":2", "must be from 0 to 100"),
    ("default:\n- crash: 256", ":2", "must be from -64 to 255"),
    ("default:\n- error: {text: x, full: 1}", ":2", "default[0].error.full: expected true or false"),
    ("default:\n- hang: false", ":2", "expected true or stubborn"),
    ("default:\n- loop: {times: 0, steps: [say: x]}", ":2", "default[0].loop.times: must be from 1 to 1000"),
    ("default:\n- loop:\n    times: 1\n    steps:\n    - say: {}", ":5", "default[0].loop.steps[0].say: expected text"),
]


@pytest.mark.parametrize(("text", "place", "said"), MISTAKES)
def test_a_mistake_is_told_with_its_place_and_a_remedy(tmp_path: Path, text: str, place: str, said: str) -> None:
    with pytest.raises(WrongConfiguration) as mistake:
        read(write(tmp_path, text))
    assert str(mistake.value).startswith(f"{tmp_path / 'playbook.yaml'}{place}: ")
    assert said in str(mistake.value)


@given(st.text(max_size=60) | st.text(alphabet="rulesdfatwhnpy:-[]{}'# \n", max_size=60))
def test_any_text_is_a_playbook_or_a_mistake(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.getbasetemp(), text)
    try:
        read(path)
    except WrongConfiguration as mistake:
        assert str(path) in str(mistake)


def test_a_wrong_playbook_is_known_before_anything_starts(tmp_path: Path) -> None:
    write(tmp_path, "default:\n- sya: a")
    with pytest.raises(WrongConfiguration, match=r"playbook.yaml:2: .*did you mean say"):
        ScriptedRunner(RunnerSetup("spark-helper", tmp_path, options={"playbook": "playbook.yaml"}))


@pytest.mark.parametrize(("option", "said"), [("missing.yaml", "there is no such file"), (7, "must be a path")])
def test_a_playbook_that_is_none_is_a_mistake(tmp_path: Path, option: object, said: str) -> None:
    with pytest.raises(WrongConfiguration, match=said):
        ScriptedRunner(RunnerSetup("spark-helper", tmp_path, options={"playbook": option}))


def test_the_built_in_one_is_harmless() -> None:
    """It neither runs commands nor writes to others."""
    playbook = read(BUILT_IN)
    every = [step for rule in playbook.rules for step in rule.steps] + list(playbook.default)
    assert {type(step) for step in every} == {steps.SayStep}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("@spark-guide what time is it?", "It is {time}."),
        ("time", "It is {time}."),
        ("@spark-guide frobnicate", "I follow a playbook"),
        ("are you there?", "I follow a playbook"),
        ("@spark-guide: hello", "Hello {sender}!"),
        ("ping", "pong"),
    ],
)
def test_the_built_in_one_answers_what_was_written(text: str, answer: str) -> None:
    """What the server knows of a message has words of its own, `time` among them."""
    prompt = f"[IRC DM] <spark-ori> {text}\n  (class: human; account: none; msgid: s.1; time: 2026-03-19T10:00:00Z)"
    said = read(BUILT_IN).chosen(prompt)[1][0]
    assert isinstance(said, steps.SayStep) and said.text.startswith(answer)


SAID = [
    ("@spark-guide hello", "Hello {sender}! I am {nick}, a guide without a model"),
    ("@web-guide hello", "Hello {sender}!"),
    ("@loop-guide: what can you do", "I am {nick}. I have no model"),
    ("what can you do", "I am {nick}. I have no model"),
    ("help", "I am {nick}. I have no model"),
    ("what is culture?", "culture is a chat server"),
    ("mentions", "An agent hears a room"),
    ("how do I add Claude", "In a shell: `culture backends`"),
    ("the web page", "The web page has the rooms"),
    ("how do I stop an agent", "You steer an agent by words"),
    ("show me the loop guard", "That takes a room"),
    ("sing", "I have no model, and my playbook has nothing for that"),
]


@pytest.mark.parametrize(("text", "answer"), SAID, ids=[text for text, _ in SAID])
def test_the_guide_knows_what_it_lists(text: str, answer: str) -> None:
    prompt = f"[IRC DM] <spark-ori> {text}\n  (class: human; account: none; msgid: s.1; time: 2026-03-19T10:00:00Z)"
    said = read(NAMED["guide"]).chosen(prompt)[1][0]
    assert isinstance(said, steps.SayStep) and said.text.startswith(answer)


def test_the_guide_asks_a_real_question_and_heeds_the_answer() -> None:
    chosen = read(NAMED["guide"]).chosen("[IRC @mention in #general] <spark-ori> @guide show me a question")[1]
    assert [type(step) for step in chosen] == [steps.AskStep, steps.RunStep, steps.SayStep]


def test_guide_and_parrot_answer_each_other_without_end() -> None:
    """What the loop guard is for; what a person says beside it comes first."""
    guide, parrot = (read(NAMED[name]) for name in ("guide", "parrot"))
    said = "[IRC @mention in #general] <spark-{}> @{} How interesting. What do you think?"
    for playbook, other in ((guide, "parrot"), (parrot, "guide")):
        step = playbook.chosen(said.format(other, "x"))[1][0]
        assert isinstance(step, steps.SayStep) and step.text.startswith("@{sender} ")
    both = f"{said.format('parrot', 'guide')}\n[IRC @mention in #general] <spark-ori> @guide what can you do"
    step = guide.chosen(both)[1][0]
    assert isinstance(step, steps.SayStep) and step.text.startswith("I am {nick}.")
