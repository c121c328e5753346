"""Coming in by invitation: a key is good once, for a while, for whom it is meant, and cannot be guessed."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from culture.config.links import LinkConfig
from culture.config.listen_policy import Tls
from culture.config.model import Listen
from culture.federation import book, certificate
from culture.federation.book import Book
from culture.protocol.message import Message
from culture.server.auth.invitations import Invitation, Invitations, Kind, digest_of, new_key, path_of
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, Hopeless
from culture.transport.one_shot import RequestDeclined, ask_once
from tests.federation.raw import mesh_of
from tests.support.client import Client, connected
from tests.support.elsewhere import elsewhere
from tests.support.people import accounts_of
from tests.support.servers import config_for, serving
from tests.support.tls import client_context, made
from tests.support.waiting import until

SECRET = "s" * 43
HOUR = 3600.0


@dataclass
class Host:
    """spark, which invites, over TLS."""

    ircd: IRCd
    fingerprint: str

    @property
    def invitations(self) -> Invitations:
        return Invitations(path_of(self.ircd.parts.config))

    @property
    def links(self) -> dict[str, LinkConfig]:
        return Book(book.path_of(self.ircd.parts.config)).read().links

    def invite(self, kind: Kind = "machine", name: str = "", left: float = HOUR, **more: Any) -> str:
        """A key."""
        key, now = new_key(), time.time()
        self.invitations.add(Invitation(kind, digest_of(key), now + left, name, **more), now)
        return key

    async def ask(self, verb: str, *params: str, certificate: Tls | None = None) -> tuple[str, ...]:
        identity = ClientIdentity(
            "thor", certificate=certificate and certificate.certificate, key=certificate and certificate.key
        )
        address = Address("127.0.0.1", self.ircd.port, True, self.fingerprint)
        return await ask_once(address, identity, verb, *params)

    async def enrol(self, key: str, name: str = "thor", secret: str = SECRET) -> tuple[str, ...]:
        return await self.ask("ENROL", name, key, secret)


@asynccontextmanager
async def inviting(folder: Path, **settings: Any) -> AsyncIterator[Host]:
    own, shown = made(folder, "spark")
    said = {
        "listen": (Listen(port=0, tls=own),),
        "links": (LinkConfig(name="odin", secret="correct-horse"),),
        **settings,
    }
    async with serving(folder / "spark", **said) as ircd:
        yield Host(ircd, shown)


async def test_who_has_the_key_becomes_a_link_with_a_secret_of_its_own(tmp_path: Path) -> None:
    theirs, shown = made(tmp_path, "thor")
    async with inviting(tmp_path) as host:
        key = host.invite(trust="restricted", channels=("#help",))
        answer = await host.ask("ENROL", "thor.local", key, SECRET, certificate=theirs)
        assert answer[:2] == ("SUCCESS", "spark")
        link = host.links["thor"]
        assert (link.name, link.secret, link.fingerprint, link.address) == ("thor.local", SECRET, shown, None)
        assert (link.trust, link.channels) == ("restricted", ("#help",))
        assert "thor" in mesh_of(host.ircd).dialler.wanted
        for file in host.ircd.parts.config.data_dir.rglob("*.json"):
            assert key not in file.read_text() and file.stat().st_mode & 0o077 == 0


def wrong(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", new_key(), SECRET)


def cut_short(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", key[:-1], SECRET)


def its_digest(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", digest_of(key), SECRET)


def expired(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", host.invite(left=-1.0), SECRET)


def taken_back(host: Host, key: str) -> tuple[str, ...]:
    host.invitations.take_back(frozenset({digest_of(key)[:8]}), time.time())
    return ("thor", key, SECRET)


def for_another(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", host.invite(name="loki"), SECRET)


def a_persons(host: Host, key: str) -> tuple[str, ...]:
    return ("ori", host.invite("person", "ori"), SECRET)


def the_host_itself(host: Host, key: str) -> tuple[str, ...]:
    return ("spark.elsewhere", key, SECRET)


def a_linked_name(host: Host, key: str) -> tuple[str, ...]:
    return ("odin.elsewhere", key, SECRET)


def no_name(host: Host, key: str) -> tuple[str, ...]:
    return ("Thor-2", key, SECRET)


def a_short_secret(host: Host, key: str) -> tuple[str, ...]:
    return ("thor", key, "short-and-weak")


ATTEMPTS = [
    (wrong, "No such invitation"),
    (cut_short, "No such invitation"),
    (its_digest, "No such invitation"),
    (expired, "has expired"),
    (taken_back, "No such invitation"),
    (for_another, "is for loki"),
    (a_persons, "No such invitation"),
    (the_host_itself, "this server itself"),
    (a_linked_name, "linked already"),
    (no_name, "begins the peer's nicks"),
    (a_short_secret, "at least 32"),
]


@pytest.mark.parametrize(("attempt", "why"), ATTEMPTS, ids=[each.__name__ for each, _ in ATTEMPTS])
async def test_an_attempt_is_refused_and_told_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, attempt: Any, why: str
) -> None:
    caplog.set_level(logging.DEBUG)
    async with inviting(tmp_path) as host:
        name, key, secret = attempt(host, host.invite())
        with pytest.raises(RequestDeclined, match=why):
            await host.enrol(key, name, secret)
        assert not host.links and list(mesh_of(host.ircd).dialler.wanted) == ["odin"]
    assert key not in caplog.text and secret not in caplog.text


async def test_a_key_that_did_not_lead_to_a_link_is_still_good(tmp_path: Path) -> None:
    async with inviting(tmp_path) as host:
        key = host.invite()
        with pytest.raises(RequestDeclined):
            await host.enrol(key, "odin")
        await host.enrol(key)
        assert list(host.links) == ["thor"]


async def test_a_key_is_good_once_and_who_comes_again_hears_who_came(tmp_path: Path) -> None:
    async with inviting(tmp_path) as host:
        key = host.invite()
        await host.enrol(key)
        for name in ("loki", "thor"):
            with pytest.raises(RequestDeclined, match="used already, by thor"):
                await host.enrol(key, name, "t" * 43)
        assert host.links["thor"].secret == SECRET and list(host.links) == ["thor"]


async def test_what_was_recorded_is_worth_nothing(tmp_path: Path) -> None:
    """The line with the key, said again; and the greeting with the link's secret, without the certificate's key."""
    theirs, _ = made(tmp_path, "thor")
    async with inviting(tmp_path) as host:
        key = host.invite()
        await host.ask("ENROL", "thor", key, SECRET, certificate=theirs)
        with pytest.raises(RequestDeclined, match="used already"):
            await host.ask("ENROL", "thor", key, SECRET, certificate=theirs)
        async with connected(host.ircd.port, tls=client_context()) as client:
            client.send(f"PASS {SECRET}")
            client.send("SERVER thor 1 :replayed")
            assert (await client.expect("ERROR")).params[0] == "Bad certificate"


async def test_nothing_is_told_to_another_certificate(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with inviting(tmp_path) as host:
        key = host.invite()
        with pytest.raises(Hopeless, match="another certificate"):
            await Host(host.ircd, "ab" * 32).enrol(key)
        assert not host.links
        await host.enrol(key)


async def guess(client: Client) -> Message:
    client.send(f"ENROL thor {new_key()} {SECRET}")
    return await client.expect("FAIL")


async def test_a_flood_of_guesses_is_stopped_from_that_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own, _ = made(tmp_path, "spark")
    theirs, _ = made(tmp_path, "thor")
    accounts = accounts_of(tmp_path, "ori")
    with elsewhere(monkeypatch) as there:
        listen = (Listen(host=there.host, port=0, tls=own), Listen(port=0))
        async with inviting(tmp_path, listen=listen, accounts_file=accounts.path, limits={"failed_logins": 3}) as host:
            port, context = host.ircd.ports[0], client_context(theirs)
            codes = []
            for _ in range(6):  # each over a connection of its own, as a guesser would
                async with connected(port, there.host, context) as client:
                    codes.append((await guess(client)).params[1])
            assert codes == ["INVALID_KEY"] * 3 + ["TOO_MANY"] * 3
            key = host.invite()
            async with connected(port, there.host, context) as client:
                client.send(f"ENROL thor {key} {SECRET}")
                assert (await client.expect("FAIL")).params[1] == "TOO_MANY"
            assert not host.links
            if there.is_real:  # else all connections seem to come from the same address
                async with connected(host.ircd.ports[1]) as client:  # nobody else is kept out
                    client.send(f"ENROL thor {key} {SECRET}")
                    assert (await client.expect("ENROL")).params[0] == "SUCCESS"


async def test_from_another_machine_it_takes_tls_and_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = made(tmp_path, "spark")
    accounts = accounts_of(tmp_path, "ori")
    with elsewhere(monkeypatch) as there:
        listen = (Listen(host=there.host, port=0, tls=own),)
        async with inviting(tmp_path, listen=listen, accounts_file=accounts.path) as host:
            key = host.invite()
            async with connected(host.ircd.port, there.host, client_context()) as client:
                client.send(f"ENROL thor {key} {SECRET}")
                assert (await client.expect("FAIL")).params[1] == "NEED_CERTIFICATE"
            assert not host.links


async def test_two_servers_are_linked_by_what_was_agreed(tmp_path: Path) -> None:
    theirs, _ = made(tmp_path, "thor")
    async with inviting(tmp_path) as host:
        await host.ask("ENROL", "thor", host.invite(), SECRET, certificate=theirs)
        dials = LinkConfig(
            name="spark", secret=SECRET, address=f"127.0.0.1:{host.ircd.port}", fingerprint=host.fingerprint
        )
        own = (Listen(port=0, tls=theirs),)
        async with serving(tmp_path / "thor", name="thor", links=(dials,), listen=own) as thor:
            await until(lambda: "spark" in mesh_of(thor).links and "thor" in mesh_of(host.ircd).links)


def test_the_certificate_that_others_know_stays_when_a_listener_gets_one(tmp_path: Path) -> None:
    before = config_for(tmp_path)
    assert certificate.own(before) is None
    known = certificate.ensured(before)
    assert known.key.stat().st_mode & 0o777 == 0o600
    listening, _ = made(tmp_path, "spark")
    later = config_for(tmp_path, listen=(Listen(port=0, tls=listening),))
    assert certificate.own(later) == certificate.ensured(later) == known
    assert certificate.own(config_for(tmp_path / "other", listen=later.listen)) == listening


class TestPeople:
    """REDEEM: the same for somebody with an account."""

    async def test_who_was_invited_makes_their_account_and_is_a_person(self, tmp_path: Path) -> None:
        async with inviting(tmp_path) as host:
            key = host.invite("person", "ori")
            word, name, nick, token = await host.ask("REDEEM", "ori", key, "correct horse")
            assert (word, name, nick) == ("SUCCESS", "ori", "spark-ori")
            account = host.ircd.parts.accounts.get("ori")
            assert account is not None and account.kind.value == "human" and token
            async with connected(host.ircd.port, tls=client_context()) as client:
                client.send("PASS :ori:correct horse")
                client.send("NICK spark-ori")
                client.send("USER ori 0 * :Ori")
                await client.expect("001")
            with pytest.raises(RequestDeclined, match="used already, by ori"):
                await host.ask("REDEEM", "ori", key, "another horse")

    @pytest.mark.parametrize(
        ("name", "password", "why"),
        [
            ("eve", "correct horse", "is for ori"),
            ("ori", "short", "at least 8"),
        ],
    )
    async def test_an_attempt_is_refused(self, tmp_path: Path, name: str, password: str, why: str) -> None:
        async with inviting(tmp_path) as host:
            key = host.invite("person", "ori")
            with pytest.raises(RequestDeclined, match=why):
                await host.ask("REDEEM", name, key, password)
            with pytest.raises(RequestDeclined, match="No such invitation"):
                await host.ask("REDEEM", "ori", new_key(), "correct horse")
            with pytest.raises(RequestDeclined, match="No such invitation"):
                await host.ask("REDEEM", "ori", host.invite(), "correct horse")
            assert host.ircd.parts.accounts.get(name) is None
            await host.ask("REDEEM", "ori", key, "correct horse")
