"""TLS as a layer, against the standard library's client."""

import hashlib
import ssl
import warnings
from itertools import cycle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from culture.config.listen_policy import Tls
from culture.server.errors import StartError
from culture.server.net.layers import LayerError
from culture.server.net.tls import TlsContexts, TlsLayer
from tests.support.tls import TlsClient, client_context, made, pieces

Files = dict[str, tuple[Tls, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Certificates of a server, a client, and a client whose certificate is out of date."""
    folder = tmp_path_factory.mktemp("tls")
    return {
        "spark": made(folder, "spark"),
        "ori": made(folder, "ori"),
        "old": made(folder, "old", days=1, ago=9),
    }


@pytest.fixture(scope="module")
def contexts(files: Files) -> TlsContexts:
    return TlsContexts([files["spark"][0]])


@pytest.fixture
def server(files: Files, contexts: TlsContexts) -> TlsLayer:
    return contexts.layer(files["spark"][0])


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_sides_understand_each_other(files: Files, server: TlsLayer, version: ssl.TLSVersion) -> None:
    context = client_context(trusted=files["spark"][0].certificate)
    context.minimum_version = context.maximum_version = version
    client = TlsClient(context)
    assert not server.is_open
    client.introduce(server)
    assert server.certificate is None
    assert server.decode(client.send(b"NICK spark-ori\r\n")) == b"NICK spark-ori\r\n"
    assert client.receive(server.encode(b":spark 001\r\n")) == b":spark 001\r\n"
    assert server.encode(b"") == server.outgoing() == b""


@given(
    sizes=st.lists(st.integers(1, 3000), min_size=1),
    texts=st.lists(st.binary(max_size=40_000), max_size=3),
    version=st.sampled_from(VERSIONS),
)
def test_the_wire_may_cut_anywhere(
    files: Files, contexts: TlsContexts, sizes: list[int], texts: list[bytes], version: ssl.TLSVersion
) -> None:
    server = contexts.layer(files["spark"][0])
    context = client_context(files["ori"][0])
    context.minimum_version = context.maximum_version = version
    client, cuts = TlsClient(context), cycle(sizes)
    client.introduce(server, cuts)
    wire = b"".join(client.send(text) for text in texts if text)
    assert b"".join(map(server.decode, pieces(wire, cuts))) == b"".join(texts)
    wire = b"".join(map(server.encode, texts))
    assert b"".join(map(client.receive, pieces(wire, cuts))) == b"".join(texts)


@given(st.binary())
def test_any_bytes_are_a_handshake_or_the_end(files: Files, contexts: TlsContexts, data: bytes) -> None:
    server = contexts.layer(files["spark"][0])
    try:
        assert server.decode(data) == b""
    except LayerError as error:
        assert error.reason.startswith("TLS: ") and error.data == b""
    assert not server.is_open


@pytest.mark.fault("C9")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["ori", "old"])
def test_a_client_is_known_by_its_fingerprint(
    files: Files, server: TlsLayer, name: str, version: ssl.TLSVersion
) -> None:
    """C9: who issued the certificate and when it ends does not matter; that the client has its key does."""
    context = client_context(files[name][0])
    context.minimum_version = context.maximum_version = version
    TlsClient(context).introduce(server)
    assert server.certificate == files[name][1]
    der = ssl.PEM_cert_to_DER_cert(files[name][0].certificate.read_text(encoding="ascii"))
    assert server.certificate == hashlib.sha256(der).hexdigest()


def test_a_browser_is_not_asked_for_a_certificate(files: Files, contexts: TlsContexts) -> None:
    server = contexts.layer(files["spark"][0], ask_for_certificate=False)
    TlsClient(client_context(files["ori"][0])).introduce(server)
    assert server.certificate is None


@pytest.mark.fault("C9")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_versions_are_refused(server: TlsLayer, version: ssl.TLSVersion) -> None:
    """C9, RFC 8996"""
    context = client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")  # else the client itself would not try
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    client = TlsClient(context)
    with pytest.raises(LayerError, match="TLS: unsupported protocol"):
        server.decode(client.shake_hands())
    client.take(server.outgoing())
    with pytest.raises(ssl.SSLError, match=r"(?i)alert.protocol.version"):
        client.shake_hands()


def test_plain_irc_on_a_tls_port_ends(server: TlsLayer) -> None:
    with pytest.raises(LayerError, match=r"^TLS: "):
        server.decode(b"NICK spark-ori\r\nUSER ori 0 * :Ori\r\n")
    server.close()
    assert not server.is_open


def test_nothing_is_said_before_the_handshake_is_complete(server: TlsLayer) -> None:
    assert server.encode(b"ERROR :too slow\r\n") == b""
    server.close()
    assert server.outgoing() == b""


@pytest.mark.parametrize("version", VERSIONS)
def test_goodbye_is_said_and_heard(server: TlsLayer, version: ssl.TLSVersion) -> None:
    """RFC 8446 §6.1: what came before the close_notify is kept."""
    context = client_context()
    context.minimum_version = context.maximum_version = version
    client = TlsClient(context)
    client.introduce(server)
    with pytest.raises(LayerError) as end:
        server.decode(client.send(b"QUIT\r\n") + client.close())
    assert (end.value.reason, end.value.data) == ("Connection closed", b"QUIT\r\n")
    last = server.encode(b"ERROR :Bye\r\n")
    server.close()
    last += server.outgoing()
    assert last and server.encode(b"too late\r\n") == b""
    client.take(last)


def test_a_server_that_ends_says_so(server: TlsLayer) -> None:
    client = TlsClient(client_context())
    client.introduce(server)
    last = server.encode(b"ERROR :Bye\r\n")
    server.close()
    assert client.receive(last) == b"ERROR :Bye\r\n"
    client.take(server.outgoing())
    assert client.engine.read(1) == b"", "the end, and not cut off"


def test_a_broken_record_ends_the_connection_and_no_other(files: Files, contexts: TlsContexts) -> None:
    one, other = contexts.layer(files["spark"][0]), contexts.layer(files["spark"][0])
    first, second = TlsClient(client_context()), TlsClient(client_context())
    first.introduce(one)
    second.introduce(other)
    wire = bytearray(first.send(b"NICK spark-ori\r\n"))
    wire[-1] ^= 1
    with pytest.raises(LayerError, match=r"^TLS: "):
        one.decode(bytes(wire))
    assert one.outgoing()
    assert other.decode(second.send(b"PING x\r\n")) == b"PING x\r\n"


def shown(contexts: TlsContexts, settings: Tls) -> str:
    """The fingerprint of the certificate that a new connection gets."""
    client = TlsClient(client_context())
    client.introduce(contexts.layer(settings))
    der = client.engine.getpeercert(binary_form=True)
    assert der is not None
    return hashlib.sha256(der).hexdigest()


def test_a_new_certificate_is_for_new_connections(tmp_path: Path) -> None:
    settings, before = made(tmp_path, "spark")
    contexts = TlsContexts([settings])
    old, client = contexts.layer(settings), TlsClient(client_context())
    client.introduce(old)
    assert shown(contexts, settings) == before
    _, after = made(tmp_path, "spark")
    assert shown(contexts, settings) == before, "not read again by itself"
    contexts.reload()
    assert shown(contexts, settings) == after != before
    assert old.decode(client.send(b"PING x\r\n")) == b"PING x\r\n"


@pytest.mark.parametrize("broken", ["certificate", "key"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_a_broken_certificate_keeps_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str, content: bytes | None
) -> None:
    settings, before = made(tmp_path, "spark")
    contexts = TlsContexts([settings])
    file: Path = getattr(settings, broken)
    file.unlink() if content is None else file.write_bytes(content)
    contexts.reload()
    assert "the certificate stays as it was" in caplog.text and str(file) in caplog.text
    assert shown(contexts, settings) == before
    with pytest.raises(StartError, match=str(file)):
        TlsContexts([settings])


def test_a_key_must_belong_to_its_certificate(tmp_path: Path) -> None:
    (spark, _), (other, _) = made(tmp_path, "spark"), made(tmp_path, "other")
    with pytest.raises(StartError, match=r"other\.key: is not the key of .*spark\.pem"):
        TlsContexts([Tls(certificate=spark.certificate, key=other.key)])


def test_a_key_with_a_passphrase_is_not_asked_for(tmp_path: Path) -> None:
    spark, _ = made(tmp_path, "spark")
    key = load_pem_private_key(spark.key.read_bytes(), None)
    spark.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    with pytest.raises(StartError, match=r"spark\.key: must be a key in PEM form without a passphrase"):
        TlsContexts([spark])
    spark.key.write_bytes(X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(StartError, match=r"spark\.key: is not a key that TLS can use"):
        TlsContexts([spark])
