"""The questions that the search by meaning is measured with, and the channel they are about."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_name("paraphrases.toml")
_SUFFIXES = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ed", "es", "ly", "s", "e", "y")


class Question(NamedTuple):
    """What is asked, and the message that answers it."""

    ask: str
    about: str


def _data() -> dict[str, Any]:
    with _FILE.open("rb") as file:
        return tomllib.load(file)


def questions() -> list[Question]:
    """All of them."""
    return [Question(each["ask"], each["about"]) for each in _data()["question"]]


def channel() -> list[str]:
    """Everything that was said: what the questions are about lies spread among the rest."""
    messages = _data()["messages"]
    said = list(messages["chatter"])
    for routine in messages["routine"]:
        said += _routine(**routine)
    answers = [question.about for question in questions()]
    apart = len(said) // len(answers)
    for number, answer in enumerate(answers):
        said.insert(number * (apart + 1), answer)
    return said


def _routine(form: str, every: int, **lists: list[str]) -> Iterator[str]:
    for number, words in enumerate(product(*lists.values())):
        if number % every == 0:
            yield form.format(**dict(zip(lists, words, strict=True)))


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_data()["function_words"].split())


def stems(text: str) -> set[str]:
    """What is left of the words that carry the meaning of a text."""
    words = re.findall(r"[a-z]+", re.sub(r"'[a-z]*", "", text.lower()))
    return {_stem(word) for word in words if word not in _function_words()}


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word.removesuffix(suffix)
    return word


def shared(one: str, other: str) -> set[tuple[str, str]]:
    """The words that two texts have in common, also where one is the beginning of the other."""
    return {
        (here, there)
        for here in stems(one)
        for there in stems(other)
        if here == there or (min(len(here), len(there)) >= 4 and (here.startswith(there) or there.startswith(here)))
    }
