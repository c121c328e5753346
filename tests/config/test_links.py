"""Links to other servers: what they may be, what protects them, and that their secrets stay hidden."""

from ipaddress import IPv4Address, IPv6Address
from traceback import format_exception

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.errors import ConfigError
from culture.config.links import Federation, LinkConfig, endpoint
from culture.config.load import load_server
from culture.config.model import ServerConfig
from culture.config.provenance import effective
from tests.config.conftest import Write

SECRET = "correct-horse-battery"
FINGERPRINT = "ab" * 32
LOCAL = f"name: thor, secret: {SECRET}"


def told(write: Write, text: str) -> str:
    """The one mistake in a file, without the file's name."""
    file = write(text)
    with pytest.raises(ConfigError) as error:
        load_server(file)
    (problem,) = error.value.problems
    return str(problem).removeprefix(str(file))


def loaded(write: Write, *links: str, before: str = "") -> tuple[LinkConfig, ...]:
    """The links of a server called spark."""
    return load_server(write(linked(*links, before=before))).config.links


def linked(*links: str, before: str = "") -> str:
    return "\n".join([f"name: spark\n{before}\nlinks:", *(f"- {{{link}}}" for link in links)])


def test_a_server_has_no_links_unless_it_says_so() -> None:
    assert (ServerConfig().links, ServerConfig().federation) == ((), Federation())


def test_a_link_says_all_it_may(write: Write) -> None:
    [link] = load_server(
        write(
            f"""
name: spark
links:
  - name: thor.example
    address: 10.0.0.2:6697
    secret: {SECRET}
    old_secret: sesame-open
    fingerprint: {":".join(["AB"] * 32)}
    tls: true
    trust: restricted
    channels: ["#shared"]
federation: {{keep: 1d, ping: 5s, timeout: 20s, stale: 10m}}
"""
        )
    ).config.links
    assert (link.name, link.short_name, link.endpoint) == ("thor.example", "thor", ("10.0.0.2", 6697))
    assert (link.secret, link.old_secret, link.fingerprint) == (SECRET, "sesame-open", FINGERPRINT)
    assert (link.tls, link.encrypted, link.trust, link.channels) == (True, True, "restricted", ("#shared",))


def test_a_link_needs_little(write: Write) -> None:
    [link] = loaded(write, LOCAL)
    assert (link.address, link.endpoint, link.encrypted, link.trust) == (None, None, False, "full")


def test_durations_of_the_mesh(write: Write) -> None:
    federation = load_server(write("federation: {keep: 1d, ping: 5s, timeout: 20s, stale: 10m}")).config.federation
    assert (federation.keep, federation.ping, federation.timeout, federation.stale) == (86400, 5, 20, 600)
    assert "federation.timeout: must be longer than ping" in told(write, "federation: {ping: 45s}")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:6667", ("127.0.0.1", 6667)),
        ("thor.local:1", ("thor.local", 1)),
        ("[fd00::2]:65535", ("fd00::2", 65535)),
        ("[::ffff:10.0.0.1]:6697", ("::ffff:10.0.0.1", 6697)),
    ],
)
def test_an_address_is_host_and_port(address: str, expected: tuple[str, int]) -> None:
    assert endpoint(address) == expected


@pytest.mark.parametrize(
    "address",
    [
        "thor",
        "thor:",
        ":6667",
        "fd00::2:6697",
        "[fd00::2]",
        "thor:0",
        "thor:65536",
        "irc://thor:1",
        "a b:1",
        "[thor]:1",
    ],
)
def test_what_is_no_address_is_refused(write: Write, address: str) -> None:
    assert "links[0].address: " in (text := told(write, linked(f"{LOCAL}, address: '{address}'")))
    assert "is not an address such as 10.0.0.2:6697" in text


@given(st.ip_addresses(), st.integers(1, 65535))
def test_any_address_can_be_written(host: IPv4Address | IPv6Address, port: int) -> None:
    assert endpoint(f"[{host}]:{port}" if host.version == 6 else f"{host}:{port}") == (str(host), port)


@pytest.mark.fault("D4")
@pytest.mark.parametrize("name", ["spark", "spark.local"])
def test_a_server_does_not_link_to_itself(write: Write, name: str) -> None:
    text = told(write, linked(f"name: {name}, secret: {SECRET}"))
    assert f"links[0].name: {name} is this server itself" in text


@pytest.mark.fault("D4")
def test_nor_by_its_address(write: Write) -> None:
    text = told(write, linked(f"{LOCAL}, address: '127.0.0.1:6667'"))
    assert "links[0].address: 127.0.0.1:6667 is this server itself" in text


def test_two_links_with_one_name_are_refused(write: Write) -> None:
    assert "links[1].name: thor is there twice" in told(write, linked(LOCAL, LOCAL))
    text = told(write, linked(LOCAL, f"name: thor.local, secret: {SECRET}"))
    assert "links[1].name: thor.local and thor both begin with thor" in text


@pytest.mark.parametrize("name", ["Thor", "my-thor", "thirteenchars", "9th"])
def test_a_peers_name_begins_its_nicks(write: Write, name: str) -> None:
    text = told(write, linked(f"name: {name}, secret: {SECRET}"))
    assert f"links[0].name: {name!r} begins the peer's nicks, so it must be 1 to 12" in text


def test_links_need_prefixed_nicks(write: Write) -> None:
    text = told(write, linked(LOCAL, before="nick_prefix: off"))
    assert ":2: nick_prefix: must be required on a server with links" in text


@pytest.mark.parametrize("address", ["10.0.0.2:6697", "thor.local:6697", "[fd00::2]:6697"])
def test_beyond_loopback_a_fingerprint_is_needed(write: Write, address: str) -> None:
    """Decision 10"""
    there = f"{LOCAL}, address: '{address}'"
    text = told(write, linked(there))
    assert f"links[0].fingerprint: is missing: {address} is on another machine" in text
    assert "culture server cert" in text and "trusted_network" in text
    assert told(write, linked(there, before="trusted_network: true")) == text, "TLS without a pin proves nothing"
    [link] = loaded(write, f"{there}, fingerprint: {FINGERPRINT}")
    assert link.encrypted and link.leaves_the_machine


@pytest.mark.parametrize("off", ["false", "off"])
def test_only_a_trusted_network_does_without_tls(write: Write, off: str) -> None:
    """Decision 10"""
    there = f"{LOCAL}, address: 'thor.local:6667', tls: {off}"
    assert "links[0].tls: thor.local:6667 is on another machine" in told(write, linked(there))
    [link] = loaded(write, there, before="trusted_network: true")
    assert not link.encrypted


@pytest.mark.parametrize("address", ["127.0.0.1:7000", "localhost:7000", "[::1]:7000"])
def test_on_loopback_a_secret_is_enough(write: Write, address: str) -> None:
    here = f"{LOCAL}, address: '{address}'"
    assert not loaded(write, here)[0].encrypted
    assert loaded(write, f"{here}, tls: on")[0].encrypted
    assert loaded(write, f"{here}, fingerprint: {FINGERPRINT}")[0].encrypted


def test_a_fingerprint_without_tls_is_a_mistake(write: Write) -> None:
    text = told(write, linked(f"{LOCAL}, tls: false, fingerprint: {FINGERPRINT}"))
    assert "links[0].fingerprint: needs TLS, which shows the certificate" in text


@pytest.mark.parametrize("fingerprint", ["abcd", "'" + "g" * 64 + "'", "'" + "a" * 63 + "'"])
def test_what_is_no_fingerprint_is_refused(write: Write, fingerprint: str) -> None:
    text = told(write, linked(f"{LOCAL}, fingerprint: {fingerprint}"))
    assert "is not the SHA-256 fingerprint of a certificate: 64 hexadecimal digits" in text


def test_a_restricted_link_names_its_channels_and_no_other_does(write: Write) -> None:
    assert "links[0].channels: must name the channels" in told(write, linked(f"{LOCAL}, trust: restricted"))
    for trust in ("full", "no_authority"):
        text = told(write, linked(f"{LOCAL}, trust: {trust}, channels: ['#shared']"))
        assert "links[0].channels: are for trust: restricted" in text
    assert loaded(write, f"{LOCAL}, trust: no_authority")[0].trust == "no_authority"
    assert "is not a channel" in told(write, linked(f"{LOCAL}, trust: restricted, channels: [shared]"))
    assert "links[0].trust: expected" in told(write, linked(f"{LOCAL}, trust: none"))


@pytest.mark.fault("C10")
@pytest.mark.parametrize("key", ["secret", "old_secret"])
@pytest.mark.parametrize(
    "secret",
    ["hushhus", "hush hush", "'hush:hush'", "'hush\thush'", "'" + "hush" * 51 + "'", "8675309", '"hush\\nhush"'],
)
def test_a_weak_or_odd_secret_is_refused_and_not_told(write: Write, key: str, secret: str) -> None:
    said = f"- name: thor\n  {key}: {secret}\n" + (f"  secret: {SECRET}\n" if key != "secret" else "")
    text = told(write, f"name: spark\nlinks:\n{said}")
    assert f"links[0].{key}: " in text and ("must be 8 to 200 characters" in text or "expected text" in text)
    assert "hush" not in text and "8675309" not in text


@pytest.mark.parametrize("key", ["secret", "old_secret"])
def test_a_secret_that_yaml_takes_for_a_comment_is_no_secret(write: Write, key: str) -> None:
    said = f"- name: thor\n  {key}: #hush-hush\n" + (f"  secret: {SECRET}\n" if key != "secret" else "")
    text = told(write, f"name: spark\nlinks:\n{said}")
    assert f"links[0].{key}: expected text" in text and "hush" not in text


def test_a_link_without_a_secret_is_a_mistake(write: Write) -> None:
    assert "links[0].secret: is missing and has no default" in told(write, linked("name: thor"))


@pytest.mark.fault("C10")
def test_secrets_are_never_shown(write: Write) -> None:
    config = load_server(write(linked(f"{LOCAL}, old_secret: sesame-open")))
    rows = {row.key: row.value for row in effective(config)}
    assert rows["links[0].secret"] == rows["links[0].old_secret"] == "******"
    assert (rows["links[0].name"], rows["links[0].fingerprint"]) == ("thor", "(not set)")
    assert "sesame" not in f"{rows} {config.config!r} {config.config}"


@pytest.mark.fault("C10")
def test_nor_in_a_traceback(write: Write) -> None:
    """What pydantic says is the cause of our error, and would quote what it was given."""
    file = write(linked("name: thor, secret: hush"))
    with pytest.raises(ConfigError) as error:
        load_server(file)
    assert "hush" not in "".join(format_exception(error.value))
