"""Masks secrets in a text: token formats of known providers, values after secret names, the daemon's own variables."""

import os
import re
from collections.abc import Mapping

MASK = "[secret]"

_NAME = r"(?:secret|token(?!s)|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_SHORTEST = 8
"""A shorter value of a variable is left as it is: words of every day would be masked."""
_TOKENS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}                      # Anthropic, OpenAI, OpenRouter
    | \b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}             # Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}    # GitHub
    | \bglpat-[\w-]{16,}                                     # GitLab
    | \bxox[abeoprs]-[\w-]{10,}                              # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                          # AWS
    | \bAIza[\w-]{30,}                                       # Google
    | \bnpm_[A-Za-z0-9]{30,} | \bpypi-[\w-]{30,} | \bhf_[A-Za-z0-9]{20,}
    | \beyJ[\w-]{8,4000}\.[\w-]{8,4000}\.[\w-]{0,4000}       # JSON Web Tokens
    """,
    re.VERBOSE | re.DOTALL,
)
# Each repetition that another pattern may follow is bounded: an output can be megabytes of the same letter.
_BEARER = re.compile(r"\b((?:Bearer|Basic)[ \t]{1,9})[\w.~+/=-]{8,}", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{0,19}://[^\s:/@]{0,99}:)[^\s@/]{1,200}(@)", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""({_NAME}[\w.-]{{0,30}}(?:\\?["'])?\s{{0,3}}[=:]\s{{0,3}}(?:\\?["'])?)([^\s"'\\,;&]{{4,}})""", re.IGNORECASE
)


# What a shell would run, or what ends a word: nobody approves what is hidden behind a mask.
_RUNS = re.compile(r"[$`|<>(){}\n]")
# A file or an address is no secret, and what is done with it is what people approve: ``-F token=@/srv/ori/.ssh/id``.
_POINTS_ELSEWHERE = re.compile(r"[@~.]|/[A-Za-z]{2,}(?:/|\Z)|[a-z][a-z0-9+.-]{0,19}:/", re.IGNORECASE)
_KEY_LINES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\s[+ -]?[A-Za-z0-9+/=]{40,80})+"
    r"(?:\s[+ -]?[A-Za-z0-9+/=]{1,80}(?=\s[+ -]?-----END))?"
)


def mask_for_approval(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text without secrets for people who approve it: no file, address or code for a shell is masked with them."""
    for value in _values(os.environ if environment is None else environment):
        text = text.replace(value, MASK)
    text = _KEY_LINES.sub(MASK, text)
    text = _TOKENS.sub(lambda found: found[0] if _RUNS.search(found[0]) or " " in found[0] else MASK, text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _PASSWORD_IN_URL.sub(lambda found: _unless_it_runs(found, found[2]), text)
    return _ASSIGNED.sub(
        lambda found: found[0] if _POINTS_ELSEWHERE.match(found[2]) else _unless_it_runs(found, ""), text
    )


def _unless_it_runs(found: re.Match[str], end: str) -> str:
    return found[0] if _RUNS.search(found[0][len(found[1]) :]) else f"{found[1]}{MASK}{end}"


def mask_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with each secret replaced by ``[secret]``; ``environment`` defaults to the process's own."""
    for value in _values(os.environ if environment is None else environment):
        text = text.replace(value, MASK)
    text = _TOKENS.sub(MASK, text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _PASSWORD_IN_URL.sub(rf"\1{MASK}\2", text)
    return _ASSIGNED.sub(rf"\1{MASK}", text)


def _values(environment: Mapping[str, str]) -> list[str]:
    secret = [value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= _SHORTEST]
    return sorted(secret, key=len, reverse=True)
