"""Who can reach a listener, and what the configuration must then say."""

import pytest

from culture.config.errors import ConfigError
from culture.config.listen_policy import is_loopback
from culture.config.load import ServerOptions, load_server
from tests.config.conftest import Write


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.1.1", "10.0.0.1", "spark.local", "::ffff:10.0.0.1"])
def test_whatever_else_may_be_reached_by_others(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.fault("C1")
def test_the_default_is_loopback() -> None:
    """C1"""
    config = load_server().config
    assert all(each.is_loopback for each in config.listen) and not config.trusted_network
    assert all(each.websocket is None for each in config.listen), "decision 3: off by default"


@pytest.mark.fault("C1")
@pytest.mark.parametrize("host", ["0.0.0.0", "'::'", "192.168.1.1"])
def test_a_listener_for_others_needs_tls(write: Write, host: str) -> None:
    """C1, decision 3"""
    with pytest.raises(ConfigError) as error:
        load_server(write(f"listen:\n  - port: 6667\n  - port: 6668\n    host: {host}\n"))
    (problem,) = error.value.problems
    assert (problem.line, problem.key) == (4, ("listen", 1, "host"))
    assert "needs tls" in problem.text and "culture server cert" in problem.text and "trusted_network" in problem.text


@pytest.mark.fault("C1")
def test_so_it_does_when_an_option_says_it(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"^command line: listen\[0\]\.host: 0\.0\.0\.0 can be reached"):
        load_server(write("name: spark"), ServerOptions(host="0.0.0.0"))


@pytest.mark.fault("C1")
def test_a_trusted_network_is_open(write: Write) -> None:
    """C1"""
    config = load_server(write("trusted_network: true\nlisten: [{host: 0.0.0.0}]")).config
    assert config.trusted_network and not config.listen[0].is_loopback


def test_tls_and_websocket_are_settings_of_a_listener(write: Write) -> None:
    text = "listen: [{host: 0.0.0.0, tls: {certificate: /a.pem, key: ~/a.key}, websocket: {origins: [HTTPS://A.example/]}}]"
    (listen,) = load_server(write(text)).config.listen
    assert listen.tls is not None and listen.websocket is not None
    assert str(listen.tls.certificate) == "/a.pem" and listen.tls.key.is_absolute()
    assert listen.websocket.origins == ("https://a.example",), "as browsers write it"


@pytest.mark.parametrize(
    "origin", ["'*'", "'null'", "https://a.example/path", "a.example", "https://", "''", "https://a b"]
)
def test_what_is_no_origin_is_refused(write: Write, origin: str) -> None:
    with pytest.raises(ConfigError, match="is not an origin"):
        load_server(write(f"listen: [{{websocket: {{origins: [{origin}]}}}}]"))


@pytest.mark.parametrize(
    "block", ["tls: {certificate: a.pem}", "tls: {key: a.key}", "websocket: {}", "websocket: {origins: []}"]
)
def test_half_a_block_is_a_mistake(write: Write, block: str) -> None:
    with pytest.raises(ConfigError):
        load_server(write(f"listen: [{{{block}}}]"))
