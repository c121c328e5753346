"""Coming in, without a network: what is said to which line."""

import base64

import pytest

from culture.protocol.message import Message as Line
from culture.transport import ClientIdentity, Hopeless
from culture.transport.registration import Registration, RegistrationRefused, alternative_nick
from culture.transport.sasl import PlainLogin, ScramLogin, choose, pieces

LOGIN = ClientIdentity("spark-ada", "ada", "very secret")


def talk(registration: Registration, *lines: str) -> list[str]:
    """What is said to the last of these lines."""
    said: list[Line] = []
    for line in lines:
        said = list(registration.take(Line.parse(line)))
    return [str(line) for line in said]


GUEST = ClientIdentity("spark-ada")


def coming(identity: ClientIdentity = GUEST, private: bool = True) -> Registration:
    registration = Registration(identity, private=private, encrypted=False)
    list(registration.begin())
    return registration


def test_only_what_is_offered_is_asked_for() -> None:
    registration = coming()
    asked = talk(registration, ":s CAP * LS * :batch server-time", ":s CAP * LS :sts=port=6697 echo-message")
    assert asked == ["CAP REQ :server-time batch echo-message"]
    assert talk(registration, ":s CAP * ACK :server-time batch echo-message") == ["CAP END"]
    assert set(registration.enabled) == {"batch", "server-time", "echo-message"}


def test_what_is_refused_is_done_without() -> None:
    registration = coming()
    talk(registration, ":s CAP * LS :batch")
    assert talk(registration, ":s CAP * NAK :batch") == ["CAP END"]
    assert registration.enabled == {}


def test_a_server_without_capabilities_lets_us_in() -> None:
    registration = coming()
    talk(registration, ":s 421 * CAP :Unknown command", ":s 001 spark-ada :Welcome")
    assert registration.done and registration.nick == "spark-ada"


def test_the_value_of_a_capability_is_kept() -> None:
    registration = coming()
    talk(registration, ":s CAP * LS :draft/multiline=max-bytes=9", ":s CAP * ACK :draft/multiline")
    assert registration.enabled == {"draft/multiline": "max-bytes=9"}


@pytest.mark.parametrize(
    ("identity", "offered", "private", "why"),
    [
        (ClientIdentity("ori", "web", on_behalf="ori"), "PLAIN", True, "no token for the account web"),
        (ClientIdentity("ori", "web", "token", on_behalf="ori"), "PLAIN", False, "use TLS"),
        (ClientIdentity("ori", "web", "token", on_behalf="ori"), "SCRAM-SHA-256", True, "lets nobody log in for ori"),
    ],
    ids=["no token", "in the open", "no PLAIN"],
)
def test_who_cannot_say_for_whom_they_come_does_not_come(
    identity: ClientIdentity, offered: str, private: bool, why: str
) -> None:
    registration = coming(identity, private)
    talk(registration, f":s CAP * LS :sasl={offered}")
    with pytest.raises(Hopeless, match=why):
        talk(registration, ":s CAP * ACK :sasl")


def test_the_prefix_is_added_once() -> None:
    registration = coming(ClientIdentity("ada"))
    assert talk(registration, ":spark.local 432 * ada :Erroneous nickname") == ["NICK spark-ada"]
    assert registration.wanted == "spark-ada"
    with pytest.raises(Hopeless, match="spark-ada is not a nick here"):
        talk(registration, ":spark.local 432 * spark-ada :Erroneous nickname")


@pytest.mark.fault("E23")
def test_a_taken_nick_has_alternatives_but_not_for_ever() -> None:
    registration = coming()
    taken = ":s 433 * nick :Nickname is already in use"
    assert talk(registration, taken) == ["NICK spark-ada_"]
    assert talk(registration, taken) == ["NICK spark-ada_2"]
    assert registration.wanted == "spark-ada"
    with pytest.raises(RegistrationRefused):
        talk(registration, *[taken] * 8)
    assert len(alternative_nick("n" * 32, 3)) <= 32


@pytest.mark.parametrize("line", [":s 464 * :Password incorrect", ":s 904 * :SASL authentication failed"])
def test_a_wrong_password_is_hopeless(line: str) -> None:
    with pytest.raises(Hopeless, match=line.rpartition(":")[2]):
        talk(coming(LOGIN), line)


def test_a_login_that_is_not_possible_is_not_skipped() -> None:
    with pytest.raises(Hopeless, match="no logins"):
        talk(coming(LOGIN), ":s CAP * LS :batch")
    with pytest.raises(Hopeless, match="no logins"):
        talk(coming(LOGIN), ":s 001 spark-ada :Welcome")


@pytest.mark.fault("C10")
def test_a_password_is_not_said_where_others_could_read_it() -> None:
    with pytest.raises(Hopeless, match="use TLS"):
        list(Registration(ClientIdentity("ada", secret="very secret"), private=False, encrypted=False).begin())
    registration = coming(LOGIN, private=False)
    talk(registration, ":s CAP * LS :sasl=PLAIN,EXTERNAL")
    with pytest.raises(Hopeless, match="use TLS"):
        talk(registration, ":s CAP * ACK sasl")
    assert isinstance(choose(LOGIN, ["PLAIN", "SCRAM-SHA-256"], private=False, certificate=False), ScramLogin)


@pytest.mark.fault("C10")
def test_an_identity_does_not_show_its_secret() -> None:
    assert "very secret" not in repr(LOGIN)


def test_a_long_secret_is_said_in_pieces() -> None:
    said = pieces(PlainLogin("ada", "x" * 295).answer(b""))
    assert [len(piece) for piece in said] == [400, 1] and said[-1] == "+"
    assert base64.b64decode(said[0]) == b"\0ada\0" + b"x" * 295
    assert pieces(b"") == ["+"]


def test_scram_as_the_rfc_has_it() -> None:
    """RFC 7677 §3"""
    scram = ScramLogin("user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert scram.answer(b"") == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert scram.answer(first) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") == b""
    with pytest.raises(Hopeless):
        scram.answer(b"v=AAAA")
