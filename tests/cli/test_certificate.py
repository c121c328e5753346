"""``culture server cert``."""

import hashlib
import ssl
import stat

import pytest

from culture.config.listen_policy import Tls
from culture.config.load import load_server
from culture.server.net.tls import TlsContexts
from tests.cli.shell import Shell
from tests.support.tls import TlsClient, client_context


async def test_it_makes_a_certificate_that_clients_can_trust(shell: Shell) -> None:
    said = await shell.run("server", "cert", "--name", "chat.example.org", "--name", "192.0.2.7", "--days", "30")
    assert (said.code, said.err) == (0, "")
    folder = shell.home / "tls"
    files = Tls(certificate=folder / "chat.example.org.pem", key=folder / "chat.example.org.key")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, files.key)] == [0o700, 0o600]
    der = ssl.PEM_cert_to_DER_cert(files.certificate.read_text(encoding="ascii"))
    assert f"SHA-256      {hashlib.sha256(der).hexdigest()}\n" in said.out
    assert list(folder.glob("*.new")) == []
    contexts = TlsContexts([files])
    for name in ("chat.example.org", "192.0.2.7"):
        TlsClient(client_context(trusted=files.certificate), name).introduce(contexts.layer(files))
    with pytest.raises(ssl.SSLCertVerificationError):
        TlsClient(client_context(trusted=files.certificate), "other.example").introduce(contexts.layer(files))


async def test_the_lines_it_prints_are_a_configuration(shell: Shell) -> None:
    said = await shell.run("server", "cert", "--name", "spark")
    lines = said.out[said.out.index("listen:") : said.out.index("A new listener")]
    listen = load_server(shell.write(lines)).config.listen
    assert [(each.host, each.tls is not None) for each in listen] == [("127.0.0.1", False), ("0.0.0.0", True)]
    assert listen[1].tls is not None
    TlsContexts([listen[1].tls])


async def test_a_certificate_that_is_there_is_kept(shell: Shell) -> None:
    first = await shell.run("server", "cert", "--name", "spark")
    again = await shell.run("server", "cert", "--name", "spark")
    shown = first.out.split("SHA-256")[1].split()[0]
    assert again.code == 1 and f"spark.pem is there already, SHA-256 {shown}:" in again.err
    forced = await shell.run("server", "cert", "--name", "spark", "--force")
    assert forced.code == 0 and forced.out != first.out


@pytest.mark.parametrize("name", ["../../evil", "/etc/x", "münchen"])
async def test_a_strange_name_stays_in_the_folder(shell: Shell, name: str) -> None:
    await shell.run("server", "cert", "--name", name)
    assert {path.parent for path in shell.folder.rglob("*.key")} <= {shell.home / "tls"}
