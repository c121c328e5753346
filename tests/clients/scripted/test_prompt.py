"""What a scripted agent makes of a prompt."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from culture.clients.scripted.prompt import PromptMessage, message_at, messages_in
from culture.clients.scripted.steps import fill, places, shell_command

PROMPT = """[IRC @mention in #general] <spark-ori> @spark-helper first
    and a second line
    (class: not a fact)
  (class: human; account: ori; msgid: spark.e.1; time: 2026-03-19T10:00:00Z)
[IRC DM] <spark-nora> helper: deploy
  (class: human; account: none; msgid: spark.e.2; time: 2026-03-19T10:00:01Z)
and 3 more: irc_read #general"""


def test_the_messages_of_a_prompt_are_found() -> None:
    first, second = messages_in(PROMPT)
    assert first.text == "@spark-helper first\nand a second line\n(class: not a fact)"
    assert (first.sender, first.target) == ("spark-ori", "#general")
    assert (second.sender, second.text, second.target) == ("spark-nora", "helper: deploy", "spark-nora")


def test_the_message_in_which_a_rule_matched_is_meant() -> None:
    assert message_at(PROMPT, PROMPT.index("second"), "spark-helper").text.startswith("first\n")
    assert message_at(PROMPT, PROMPT.index("deploy"), "spark-helper") == PromptMessage(
        "spark-nora", "deploy", "spark-nora", PROMPT.index("[IRC DM]")
    )
    assert message_at(PROMPT, None, "spark-helper").text == "deploy"


def test_a_prompt_without_messages_is_its_own_text() -> None:
    assert message_at("go on", None, "spark-helper") == PromptMessage("", "go on", "")


def test_only_the_own_nick_is_taken_from_the_front() -> None:
    for text in ("@spark-helper-2 hi", "@helpers hi", "helper hi", "hi @helper", "@spark-other hi"):
        assert message_at(f"[IRC DM] <a> {text}", None, "spark-helper").text == text
    for call in ("@spark-helper", "@helper,", "@Helper:", "helper:", "spark-helper:"):
        assert message_at(f"[IRC DM] <a> {call} hi", None, "spark-helper").text == "hi"


@given(st.text())
def test_any_text_is_a_prompt(text: str) -> None:
    assert isinstance(message_at(text, None, "spark-helper").text, str)


def test_places_are_filled_once() -> None:
    assert fill("{a} {b} {{a}} ${a} {c}", {"a": "{b}", "b": "2"}) == "{b} 2 {a} ${a} {c}"
    assert list(places("{a} {{b}} ${c} {d e}")) == ["a"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_people_write_is_data_to_the_shell(text: str) -> None:
    command, variables = shell_command("printf %s {text}", {"text": text, "sender": "unused"})
    shown = subprocess.run(["/bin/sh", "-c", command], env=variables, capture_output=True, check=True)
    assert shown.stdout.decode() == text


def test_it_is_data_even_in_quotes() -> None:
    command, variables = shell_command('echo "{text}"', {"text": "$(echo broken) `echo broken`; echo broken"})
    shown = subprocess.run(["/bin/sh", "-c", command], env=variables, capture_output=True, check=True)
    assert shown.stdout.decode() == "$(echo broken) `echo broken`; echo broken\n"
