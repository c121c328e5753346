"""culture.yaml: every mistake is named with file, line, key and what to do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from culture.config.errors import ConfigError
from culture.config.load import ServerOptions, load_server
from culture.config.model import Listen, ServerConfig
from culture.config.yaml_document import parse
from tests.config.conftest import Write


def problems(file: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_server(file)
    return [str(problem).removeprefix(str(file)) for problem in error.value.problems]


def test_no_file_means_defaults(home: Path) -> None:
    config = load_server().config
    assert config == ServerConfig()
    assert config.listen == (Listen(host="127.0.0.1", port=6667),)
    assert config.channels == ("#general",)
    assert config.data_dir == home / "data" / config.name


def test_the_file_is_culture_yaml_in_the_home_folder(home: Path) -> None:
    home.mkdir()
    (home / "culture.yaml").write_text("name: thor", encoding="utf-8")
    assert load_server().config.name == "thor"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n"])
def test_an_empty_file_means_defaults(write: Write, text: str) -> None:
    assert load_server(write(text)).config == ServerConfig()


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    assert problems(tmp_path / "other.yaml") == [": there is no such file"]


def test_a_whole_file_loads(write: Write) -> None:
    config = load_server(
        write(
            """
name: spark.local
nick_prefix: off
listen:
  - {host: "::1", port: 0}
  - port: 7000
data_dir: ~/elsewhere
channels: ["#general", "#llama-cpp"]
operators:
  - {name: ori, password: s3cret}
limits: {ping_after: 2m, ping_timeout: 0.1h, shutdown_timeout: 3}
"""
        )
    ).config
    assert (config.short_name, config.nick_prefix) == ("spark", "off")
    assert config.listen == (Listen(host="::1", port=0), Listen(port=7000))
    assert config.data_dir == Path.home() / "elsewhere"
    assert config.channels == ("#general", "#llama-cpp")
    assert config.operators[0].password == "s3cret"
    assert (config.limits.ping_after, config.limits.ping_timeout, config.limits.shutdown_timeout) == (120, 360, 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nick_prefx: off", ":1: nick_prefx: unknown key (did you mean nick_prefix?)"),
        ("limits:\n  nick_lenght: 3", ":2: limits.nick_lenght: unknown key (did you mean nick_length?)"),
        ("listen:\n- prot: 1", ":2: listen[0].prot: unknown key (did you mean port?)"),
        ("admin:\n  zzz: 1", ":2: admin.zzz: unknown key (the keys here are: location1, location2, email)"),
        (
            "description: |\n  a\n",
            ":1: description: must be one line; a block that begins with | or > ends with a line break",
        ),
        ("motd: 5", ":1: motd: expected text, found the number 5 (put it in quotes)"),
        ("motd: true", ":1: motd: expected text, found true (put it in quotes)"),
        ("port: 6667", ":1: port: unknown key (did you mean listen[].port or web.port?)"),
        ("ping_after: 9", ":1: ping_after: unknown key (did you mean limits.ping_after?)"),
        (
            "listen: 6667",
            ":1: listen: expected a list, found the number 6667 (begin each entry with a hyphen and a space)",
        ),
        (
            "name: My-Host.local",
            ":1: name: 'My-Host' begins every nick, so it must be 1 to 12 of a-z and 0-9, a letter first: try myhost",
        ),
        (
            "name: '7'",
            ":1: name: '7' begins every nick, so it must be 1 to 12 of a-z and 0-9, a letter first",
        ),
        ("name: spark\nlimits:\n  nick_length: 6", ":3: limits.nick_length: leaves no room behind spark-"),
        ("limits: [1]", ":1: limits: expected a block of settings, found a list"),
        ("admin:", ":1: admin: expected a block of settings, found nothing (give it a value or take the key away)"),
        (
            'limits: {targets: "4"}',
            ":1: limits.targets: expected a whole number, found the text '4' (leave out the quotes)",
        ),
        ("limits: {targets: 1.5}", ":1: limits.targets: expected a whole number, found the number 1.5"),
        ("limits: {targets: true}", ":1: limits.targets: expected a whole number, found true"),
        ("limits: {targets: 0}", ":1: limits.targets: must be at least 1"),
        ("listen: [{port: 70000}]", ":1: listen[0].port: must be at most 65535"),
        ("listen: []", ":1: listen: needs at least one address"),
        ("nick_prefix: of", ":1: nick_prefix: expected 'required' or 'off', found the text 'of' (did you mean off?)"),
        ("password: ''", ":1: password: must not be empty"),
        ("operators: [{name: ori}]", ":1: operators[0].password: is missing and has no default"),
        ("network: a b", ":1: network: 'a b' must be one word"),
        ("channel_modes: +nt", ":1: channel_modes: '+nt' must be letters of imnstCD, for example nt"),
        ("channel_modes: ntk", ":1: channel_modes: 'ntk' must be letters of imnstCD, for example nt"),
        (
            "limits:\n  ping_after: 9\n  ping_timeout: 9",
            ":3: limits.ping_timeout: must be longer than ping_after, else nobody could answer the PING",
        ),
        ("a: 1\nname: x\na: 2", ":3: a: given twice, first on line 1 (keep one of them)"),
        ("limits:\n  modes: 1\n  modes: 1", ":3: limits.modes: given twice, first on line 2 (keep one of them)"),
        ("- name", ":1: expected keys and values, such as name: spark"),
        ("[a]: 1", ":1: a key must be a word"),
        ("name: !secret x", ":1: name: cannot make sense of 'x'"),
        (
            "name: x\n---\nname: y",
            ":2: not valid YAML: expected a single document in the stream but found another document",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_hint(write: Write, text: str, problem: str) -> None:
    assert problems(write(text)) == [problem]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("channels:\n  - #general", ":2: channels[0]: expected text, found nothing"),
        ("name: spark\nchannels: #general", ":2: channels: expected a list, found nothing"),
        (
            "channels: [#general]\nname: spark",
            ":2: not valid YAML: while parsing a flow sequence expected ',' or ']', but got '<stream end>'",
        ),
        (
            "channels: [#general, #tea]",
            ":1: not valid YAML: while parsing a flow node expected the node content, but found '<stream end>'",
        ),
        (
            "# It's one of [#these].\nchannels: [#general]\n",
            ":3: not valid YAML: while parsing a flow node expected the node content, but found '<stream end>'",
        ),
    ],
)
def test_an_unquoted_channel_is_told_apart(write: Write, text: str, place: str) -> None:
    hint = '(in YAML an unquoted # begins a comment: write "#general" with the quotes)'
    assert problems(write(text)) == [f"{place} {hint}"]


def test_a_tab_is_told_apart(write: Write) -> None:
    (problem,) = problems(write("limits:\n\ttargets: 3\n"))
    assert problem.startswith(":2: ") and problem.endswith("(indent with spaces, not with tabs)")


def test_every_mistake_is_told_in_the_order_of_the_file(write: Write) -> None:
    found = problems(write("limits: {targets: 0}\nnmae: x\nchannels: [general]\n"))
    assert [problem.split(": ")[0] for problem in found] == [":1", ":2", ":3"]


@pytest.mark.parametrize("text", ["name: [", "\tname: x", "name: *x", "a: &a [*a]", "[" * 3000, "name: @x"])
def test_what_is_not_yaml_is_said_and_nothing_else_happens(write: Write, text: str) -> None:
    assert len(problems(write(text))) == 1


def test_aliases_cannot_fill_the_memory(write: Write) -> None:
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    (problem,) = problems(write(laughs))
    assert "does an alias repeat itself?" in problem


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, write: Write) -> None:
    assert problems(tmp_path) == [": cannot be read: Is a directory"]
    file = write("")
    file.write_bytes(b"name: \xff")
    assert problems(file) == [": cannot be read: not UTF-8 text"]


@given(st.text() | st.text("ab:-[]{}&*!|>#'\"\\ \n\t1%@`?,"))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    """No file, whatever is in it, ends in anything but values or a ConfigError."""
    try:
        assert isinstance(parse(Path("culture.yaml"), text).data, dict)
    except ConfigError as error:
        assert error.problems


@pytest.mark.parametrize("name", ["spark", "s", "spark2", "spark.local", "abcdefghijkl", "spark.a-b.example"])
def test_a_server_s_name_is_short_or_dotted(name: str) -> None:
    """Decision 1"""
    assert ServerConfig(name=name).short_name == name.split(".")[0]


@pytest.mark.parametrize(
    "name", ["", "Spark", "2spark", "spark-2", "abcdefghijklm", "spark_2", "spärk", "spark-2.local"]
)
def test_a_hyphen_would_make_the_owner_of_a_nick_ambiguous(name: str) -> None:
    """Decision 1: spark + 2-bob and spark-2 + bob would be one nick."""
    with pytest.raises(ValidationError):
        ServerConfig(name=name)


def test_without_the_prefix_rule_any_host_name_will_do() -> None:
    assert ServerConfig(name="My.Little-Server", nick_prefix="off").short_name == "My"
    with pytest.raises(ValidationError):
        ServerConfig(name="my server", nick_prefix="off")


def test_options_go_over_the_file(write: Write, tmp_path: Path) -> None:
    file = write("name: thor\nlisten: [{host: '::1', port: 7000}, {port: 7001}]\ndata_dir: /srv/thor")
    options = ServerOptions(name="spark", port=7, data_dir=tmp_path)
    config = load_server(file, options).config
    assert (config.name, config.data_dir) == ("spark", tmp_path)
    assert config.listen == (Listen(host="::1", port=7),), "one address in place of all, what is not said as it was"


def test_a_wrong_option_is_not_blamed_on_the_file(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"^command line: name: 'a b' does not look like a host name"):
        load_server(write("motd: hello"), ServerOptions(name="a b"))


def test_nothing_changes_a_configuration_that_is_in_use() -> None:
    with pytest.raises(ValidationError):
        ServerConfig().name = "other"  # type: ignore[misc]


def test_secrets_are_not_in_what_is_printed() -> None:
    config = ServerConfig.model_validate({"password": "s3cret", "operators": ({"name": "ori", "password": "s3cret"},)})
    assert "s3cret" not in repr(config) and "s3cret" not in str(config)


def test_a_password_that_yaml_takes_for_a_comment_is_not_no_password(write: Write) -> None:
    [told] = problems(write("password: #open-sesame\n"))
    assert "quote a password that begins with #" in told and "open-sesame" not in told


@pytest.mark.parametrize("secret", ["8675309", "2024-05-17", "true", "1.75", "#8675309"])
def test_a_secret_that_is_no_text_is_not_told(write: Write, secret: str) -> None:
    """C10: the error is logged, and REHASH tells it to an operator."""
    told = "\n".join(problems(write(f"operators:\n- name: ori\n  password: {secret}\n")))
    assert "operators[0].password: expected text" in told
    assert secret not in told
