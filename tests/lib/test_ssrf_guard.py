"""Which addresses may be called."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.lib.ssrf_guard import HttpTarget, TargetRefused, permitted

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.7",
    "169.254.169.254",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "240.0.0.1",
    "0.1.2.3",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd12::1",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
]
NEVER = ["0.0.0.0", "::", "224.0.0.1", "239.1.2.3", "255.255.255.255", "ff02::1", "::ffff:0.0.0.0", "::ffff:224.0.0.1"]
EVERYTHING = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER, "nonsense", ""])
@pytest.mark.fault("H3")
def test_addresses_around_here_are_refused(address: str) -> None:
    assert not permitted(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "162.159.128.233", "2606:4700::6810:1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]
)
def test_addresses_out_there_are_not(address: str) -> None:
    assert permitted(address)


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.fault("H5")
def test_one_that_is_listed_may_be_called(address: str) -> None:
    assert permitted(address, EVERYTHING)


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.fault("H3")
def test_some_are_no_host_at_all(address: str) -> None:
    assert not permitted(address, EVERYTHING)


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
@pytest.mark.fault("H5")
def test_only_the_listed_network_opens(address: ipaddress.IPv4Address) -> None:
    listed = (ipaddress.ip_network("10.7.0.0/16"),)
    assert permitted(str(address), listed) == (str(address).split(".")[1] == "7")
    assert permitted(f"::ffff:{address}", listed) == permitted(str(address), listed)


@pytest.mark.parametrize(
    "url", ["", "ftp://example.com/x", "https://", "https:///x", "http://[::1/x", "https://a:port/s3cret"]
)
@pytest.mark.fault("H6")
def test_what_is_no_address_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(TargetRefused) as refusal:
        HttpTarget.parse(url)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.fault("H6")
def test_only_the_host_is_shown() -> None:
    target = HttpTarget.parse("https://user:pass@Discord.com/api/webhooks/1/s3cret?wait=1 2")
    assert str(target) == "discord.com" and target.port == 443 and target.path == "/api/webhooks/1/s3cret?wait=1%202"
    assert not any(secret in repr(target) for secret in ("s3cret", "pass", "wait"))
    assert target.authorization == "Basic dXNlcjpwYXNz"


def test_a_redirect_goes_on_from_where_it_came() -> None:
    target = HttpTarget.parse("https://user:pass@example.com/a/b")
    assert target.redirected("/c").url == "https://user:pass@example.com/c"
    assert target.redirected("https://example.org/c").authorization is None


@pytest.mark.parametrize("location", ["http://example.com/a/b", "", "gopher://example.com", "https://[::1"])
@pytest.mark.fault("H3", "H11")
def test_a_redirect_to_less_is_refused(location: str) -> None:
    target = HttpTarget.parse("https://example.com/a/b")
    if location == "":
        assert target.redirected("").url == target.url  # the same again, and again, until it is too often
    else:
        with pytest.raises(TargetRefused, match="redirects"):
            target.redirected(location)
