"""weechat and irssi over TLS with a pinned certificate, logged in to an account."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.realclients.irssi import Irssi, irssi, run
from tests.realclients.people import GENERAL, TEXT
from tests.realclients.secure import PASSWORD, Household, Secure, household, secured
from tests.realclients.weechat import CORE, Weechat, weechat
from tests.support.client import registered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "people.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Household:
    """The account ori and a certificate, made once."""
    return household(tmp_path_factory.mktemp("household"))


@pytest.fixture
async def secure(tmp_path: Path, made: Household) -> AsyncIterator[Secure]:
    """A server with TLS that knows ori."""
    async with secured(tmp_path, made) as running:
        yield running


async def at_weechat(person: Weechat, secure: Secure, *options: str, fingerprint: str = "") -> None:
    """Connect to the server as docs/clients/people.md says, with these options of ``/server add``."""
    before_4 = re.match("[0-3]\\.", await run("weechat-headless", "--version"))
    tls = "ssl" if before_4 else "tls"
    add = f"/server add culture 127.0.0.1/{secure.port} -{tls} -nicks=spark-ori,spark-ori2 -autojoin=#general"
    person.type(" ".join((add, *(option.replace("tls_", f"{tls}_") for option in options))), CORE)
    person.type(f"/set irc.server.culture.{tls}_fingerprint {fingerprint or secure.made.fingerprint}", CORE)
    person.type("/connect culture", CORE)


async def at_irssi(person: Irssi, secure: Secure, login: str, tls: str = "", pinned: str = "") -> None:
    """Connect to the server as docs/clients/people.md says, with this login and these options of TLS."""
    pin = f"-tls -notls_verify -tls_pinned_cert {pinned or secure.made.pinned} {tls}"
    await person.type(f"/network add -nick spark-ori {login} culture")
    await person.type(f"/server add -network culture {pin} 127.0.0.1 {secure.port}")
    await person.type("/channel add -auto #general culture")
    await person.type("/connect culture")


def with_password(password: str = PASSWORD) -> str:
    """What irssi needs for SASL PLAIN."""
    return f"-sasl_mechanism PLAIN -sasl_username ori -sasl_password {password}"


def open_weechat(folder: Path) -> AbstractAsyncContextManager[Weechat]:
    """A person at weechat who has not connected yet."""
    return weechat(folder / "weechat", server="culture")


@pytest.mark.requirement("A32")
@pytest.mark.fault("C5")
@pytest.mark.parametrize("mechanism", ["plain", "scram-sha-256"])
async def test_weechat_logs_in_with_a_password(secure: Secure, tmp_path: Path, mechanism: str) -> None:
    """C5, IRCv3 sasl-3.2, RFC 4616, RFC 7677: over TLS, to the certificate that weechat was told of."""
    login = (f"-sasl_mechanism={mechanism}", "-sasl_username=ori", f"-sasl_password={PASSWORD}")
    async with open_weechat(tmp_path) as person:
        await at_weechat(person, secure, *login)
        await person.shows("certificate fingerprint matches")
        await person.shows("You are now logged in as ori")
        await person.shows("SASL authentication successful")
        await person.shows(r"spark-ori \[ori\] .* has joined #general", GENERAL)
        person.type("/whois spark-ori", GENERAL)
        await person.shows(r"\[spark-ori\] is logged in as ori")


@pytest.mark.requirement("A32")
@pytest.mark.fault("C5")
async def test_irssi_logs_in_with_a_password(secure: Secure, tmp_path: Path) -> None:
    """C5, IRCv3 sasl-3.2, RFC 4616"""
    async with irssi(tmp_path / "irssi") as person:
        await at_irssi(person, secure, with_password())
        await person.shows(r"Protocol: TLSv1\.[23]")
        await person.shows(f"Certificate Fingerprint: {secure.made.pinned}")
        await person.shows("You are now logged in as ori")
        await person.shows("SASL authentication succeeded")
        await person.shows(r"spark-ori \[.*\] has joined #general")
        await person.type("/whois spark-ori")
        await person.shows(r"account\s+: ori")


@pytest.mark.requirement("A32")
@pytest.mark.fault("C5")
async def test_both_log_in_with_a_certificate(secure: Secure, tmp_path: Path) -> None:
    """C5, RFC 4422 appendix A: EXTERNAL, without a password."""
    async with open_weechat(tmp_path) as person:
        shutil.copy(secure.made.mine, tmp_path / "weechat" / "ori.pem")
        await at_weechat(person, secure, "-sasl_mechanism=external", "-tls_cert=~/ori.pem")
        await person.shows("You are now logged in as ori")
        await person.shows(r"spark-ori \[ori\] .* has joined #general", GENERAL)
    async with irssi(tmp_path / "irssi") as other:
        shutil.copy(secure.made.mine, tmp_path / "irssi" / "ori.pem")
        await at_irssi(other, secure, "-sasl_mechanism EXTERNAL", "-tls_cert ~/ori.pem")
        await other.shows("You are now logged in as ori")
        await other.shows(r"spark-ori \[.*\] has joined #general")


@pytest.mark.requirement("A32")
async def test_a_wrong_password_is_refused_and_both_say_so(secure: Secure, tmp_path: Path) -> None:
    """IRCv3 sasl-3.1: 904; neither stays without the login it was told to use."""
    login = ("-sasl_mechanism=scram-sha-256", "-sasl_username=ori", "-sasl_password=wrong")
    async with open_weechat(tmp_path) as person:
        await at_weechat(person, secure, *login)
        await person.shows("SASL authentication failed")
        await person.shows("disconnected from server")
    async with irssi(tmp_path / "irssi") as other:
        await at_irssi(other, secure, with_password("wrong"))
        await other.shows("SASL authentication failed")
        await other.shows("Connection lost")
    assert secure.ircd.parts.network.user("spark-ori") is None


@pytest.mark.requirement("A32")
@pytest.mark.fault("C9")
async def test_a_certificate_that_was_not_pinned_is_not_talked_to(secure: Secure, tmp_path: Path) -> None:
    """C9: the fingerprint decides, and the password is not sent to whoever has another."""
    login = ("-sasl_mechanism=plain", "-sasl_username=ori", f"-sasl_password={PASSWORD}")
    async with open_weechat(tmp_path) as person:
        await at_weechat(person, secure, *login, fingerprint="0" * 64)
        await person.shows("certificate fingerprint does NOT match")
    async with irssi(tmp_path / "irssi") as other:
        await at_irssi(other, secure, with_password(), pinned=":".join(["00"] * 32))
        await other.shows("Pinned certificate mismatch")
    assert secure.ircd.parts.network.users == {}


@pytest.mark.requirement("A32")
async def test_two_devices_of_a_person_are_one_nick(secure: Secure, tmp_path: Path) -> None:
    """Decision 1: weechat and irssi as ori; each shows what the other one says, and goes where it goes."""
    login = ("-sasl_mechanism=scram-sha-256", "-sasl_username=ori", f"-sasl_password={PASSWORD}")
    async with (
        registered(secure.ircd.port, "spark-guest") as guest,
        open_weechat(tmp_path) as desk,
        irssi(tmp_path / "irssi") as phone,
    ):
        await guest.join(GENERAL)
        await at_weechat(desk, secure, *login)
        await desk.shows("Channel #general: 2 nicks", GENERAL)
        await guest.expect("JOIN", GENERAL)
        await at_irssi(phone, secure, with_password())
        await phone.shows(r"spark-ori \[.*\] has joined #general")
        await phone.shows("#general: Total of 2 nicks")
        await phone.type("/window goto #general")

        desk.type(f"from the desk {TEXT}", GENERAL)
        await phone.shows(f"<[ @]?spark-ori> from the desk {TEXT}$")
        await guest.expect("PRIVMSG", GENERAL, f"from the desk {TEXT}")
        await phone.type(f"from the phone {TEXT}")
        await desk.shows(f"^@?spark-ori from the phone {TEXT}$", GENERAL)
        assert (await guest.expect("PRIVMSG", GENERAL, f"from the phone {TEXT}")).source.startswith("spark-ori!")

        guest.send("PRIVMSG spark-ori :hello, both of you")
        await desk.shows("^spark-guest hello, both of you$", "spark-guest")
        await phone.shows("^<spark-guest> hello, both of you$")

        await phone.type("/join #tea")
        await desk.shows("Channel #tea: 1 nick", "#tea")
        desk.type("/part", "#tea")
        await phone.shows(r"spark-ori \[.*\] has left #tea")
        desk.type("/nick spark-ada-lovelace", GENERAL)
        await phone.shows("You're now known as spark-ada-lovelace")
        await guest.expect("NICK", "spark-ada-lovelace")

        await phone.type("/quit")
        await phone.shows("Connection lost")
        desk.type("still here", GENERAL)
        await guest.expect("PRIVMSG", GENERAL, "still here")
        assert [each.verb for each in guest.seen].count("JOIN") == 2, "guest's own and ori's, once"
        assert not {"QUIT", "PART"} & {each.verb for each in guest.seen}


@pytest.mark.requirement("A03", "A32")
async def test_the_settings_that_the_page_for_people_gives_log_each_client_in(secure: Secure, tmp_path: Path) -> None:
    """A03: docs/clients/people.md, typed as it stands there."""
    async with open_weechat(tmp_path) as person:
        for line in await _block("weechat-tls", secure, secure.made.fingerprint):
            person.type(line, CORE)
        await person.shows("certificate fingerprint matches")
        await person.shows("You are now logged in as ori")
        await person.shows(r"spark-ori \[ori\] .* has joined #general", GENERAL)
        person.type("/quit")
    async with irssi(tmp_path / "irssi") as other:
        for line in await _block("irssi-tls", secure, secure.made.pinned):
            await other.type(line)
        await other.shows("You are now logged in as ori")
        await other.shows(r"spark-ori \[.*\] has joined #general")
    arguments = ("-c", "127.0.0.1", "-p", str(secure.ircd.port), "-n", "spark-ori", "-w", f"ori:{PASSWORD}")
    async with irssi(tmp_path / "without-sasl", *arguments) as other:
        await other.shows("You are now logged in as ori")


async def _block(language: str, secure: Secure, fingerprint: str) -> list[str]:
    """The lines of the page in this language, with what stands for the reader's own things replaced."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    text = re.sub(r"chat\.example\.org([ /])6697", rf"127.0.0.1\g<1>{secure.port}", blocks[0])
    text = text.replace("FINGERPRINT", fingerprint).replace("PASSWORD", PASSWORD)
    if re.match("[0-3]\\.", await run("weechat-headless", "--version")):
        text = text.replace(f"{secure.port} -tls ", f"{secure.port} -ssl ")
        text = text.replace("culture.tls_", "culture.ssl_")
    return text.splitlines()
