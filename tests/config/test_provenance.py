"""The configuration in force, and where each value came from."""

from pathlib import Path

import pytest

from culture.config.introspect import keys
from culture.config.load import Loaded, ServerOptions, load_server
from culture.config.model import ServerConfig
from culture.config.provenance import SettingRow, effective
from tests.config.conftest import Write


def shown(loaded: Loaded[ServerConfig]) -> dict[str, SettingRow]:
    return {row.key: row for row in effective(loaded)}


def test_a_value_names_its_line_its_option_or_the_default(write: Write) -> None:
    file = write("motd: |\n  one\n  two\nlisten:\n  - port: 7000\nlimits:\n  ping_after: 2m\n")
    rows = shown(load_server(file, ServerOptions(host="::1", data_dir=Path("/srv"))))
    assert rows["motd"] == ("motd", "one\\ntwo\\n", f"{file}:1")
    assert rows["listen[0].host"] == ("listen[0].host", "::1", "option --host")
    assert rows["listen[0].port"] == ("listen[0].port", "7000", f"{file}:5")
    assert rows["limits.ping_after"] == ("limits.ping_after", "120", f"{file}:7")
    assert rows["limits.targets"] == ("limits.targets", "4", "default")
    assert rows["data_dir"] == ("data_dir", "/srv", "option --data-dir")


def test_a_moved_home_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(load_server())["data_dir"].source == "environment CULTURE_HOME"
    assert shown(load_server())["accounts_file"].source == "environment CULTURE_HOME"
    monkeypatch.delenv("CULTURE_HOME")
    assert shown(load_server(options=ServerOptions(name="spark")))["data_dir"].source == "default"


def test_secrets_are_stars(write: Write) -> None:
    rows = shown(load_server(write("password: s3cret\noperators:\n  - {name: ori, password: s3cret}")))
    assert rows["password"].value == rows["operators[0].password"].value == "******"
    assert rows["operators[0].name"].value == "ori"
    assert "s3cret" not in str(rows)


def test_what_skills_keep_secret_is_not_shown(write: Write) -> None:
    said = "history: {store: 'postgresql://ori:s3cret@host/db', semantic: {key: s3cret}}\nskills: {dice: {key: s3cret}}"
    loaded = load_server(write(said))
    rows = shown(loaded)
    assert rows["history.store"].value == "postgresql://ori:******@host/db"
    assert rows["history.semantic.key"].value == rows["skills"].value == "******"
    assert "s3cret" not in str(rows) + repr(loaded.config)
    assert shown(load_server())["skills"].value == "(none)"


def test_every_setting_is_shown() -> None:
    rows = {key.replace("[0]", "[]") for key in shown(load_server())}
    lists = {"operators[]": "operators", "links[]": "links"}
    unset = lists | {key: key for key in ("listen[].tls", "listen[].websocket", "history.channels", "oidc", "web.tls")}
    plain = {key for key in keys(ServerConfig) if not key.startswith(tuple(unset))}
    assert plain | set(unset.values()) == rows
