"""Where the history is kept, as culture.yaml says it."""

import pytest

from culture.config.errors import ConfigError
from culture.config.load import load_server
from tests.config.conftest import Write


@pytest.mark.parametrize(
    "address",
    [
        "sqlite",
        "postgresql://culture@db.example/chat",
        "postgres://culture:s3cret@db.example:5433/chat?sslmode=verify-full",
        "postgresql:///chat?host=/run/postgresql",
    ],
)
def test_a_store_is_taken(write: Write, address: str) -> None:
    assert load_server(write(f"history: {{store: '{address}'}}")).config.history.store == address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("mysql://u:s3cret@db/chat", "expected sqlite, or an address such as postgresql://"),
        ("s3cret", "expected sqlite, or an address such as postgresql://"),
        ("postgresql://u:s3cret/x@db/chat", "with %2F for /"),
        ("postgresql://u:s3cret#x@db/chat", "with %2F for /"),
        ("postgresql://u:s3cret?x@db/chat", "with %2F for /"),
        ("postgresql://db/chat?password=s3cret", "a password stands before the host"),
    ],
)
def test_what_cannot_be_read_is_refused_and_not_shown(write: Write, address: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_server(write(f"history: {{store: '{address}'}}"))
    assert expected in str(raised.value)
    assert "s3cret" not in str(raised.value)
