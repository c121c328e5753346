"""Self-signed certificates, for links and clients that check the fingerprint."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from culture.lib.files import replace_file
from culture.runtime import REAL, Runtime

_LONGEST_COMMON_NAME = 64
_SKEW = timedelta(hours=1)  # the client's clock may be behind ours


def make(
    names: Sequence[str],
    days: int,
    certificate: Path,
    key: Path,
    now: datetime | None = None,
    *,
    runtime: Runtime = REAL,
) -> str:
    """Write a new key and a self-signed certificate for these hosts; return its fingerprint.

    The certificate is valid for ``days``, from ``now`` on (None: the present time). The fingerprint is its SHA-256 in
    hex.
    """
    secret = ec.generate_private_key(ec.SECP256R1())
    signed = _signed(secret, names, days, now or runtime.utc())
    replace_file(key, secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), runtime=runtime)
    replace_file(certificate, signed.public_bytes(Encoding.PEM), runtime=runtime)
    return signed.fingerprint(SHA256()).hex()


def _signed(secret: ec.EllipticCurvePrivateKey, names: Sequence[str], days: int, now: datetime) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_LONGEST_COMMON_NAME])])
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]  # servers also call each other
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .sign(secret, SHA256())
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
