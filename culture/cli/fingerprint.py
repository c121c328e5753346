"""The fingerprint by which other servers know ours."""

import ssl
from hashlib import sha256
from pathlib import Path

_END = "-----END CERTIFICATE-----"


def of(certificate: Path) -> str | None:
    """SHA-256 of the first certificate in a file, in hexadecimal; None where there is none to be read."""
    try:
        first = certificate.read_text(encoding="ascii").partition(_END)[0] + _END
        return sha256(ssl.PEM_cert_to_DER_cert(first[first.index("-----BEGIN") :])).hexdigest()
    except (OSError, ValueError):
        return None
