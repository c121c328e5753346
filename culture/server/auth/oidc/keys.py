"""The keys that an issuer signs with (RFC 7517, RFC 7518 §6, RFC 8037)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from culture.server.auth.oidc.strict import unarmoured
from culture.server.shapes import Json, items, mapping, text

_MOST_KEYS = 100
_RSA_BITS = range(2048, 8192 + 1)
_P256_BYTES = 32

Public = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class Key:
    """A public key, and the one algorithm that it is for: a token cannot choose another."""

    algorithm: str
    public: Public = field(repr=False)

    def signed(self, signature: bytes, data: bytes) -> bool:
        """Is this the issuer's signature of the data?"""
        try:
            match self.public:
                case RSAPublicKey() as rsa:
                    rsa.verify(signature, data, padding.PKCS1v15(), SHA256())
                case EllipticCurvePublicKey() as curve:
                    curve.verify(_as_der(signature), data, ec.ECDSA(SHA256()))
                case Ed25519PublicKey() as edwards:
                    edwards.verify(signature, data)
        except InvalidSignature:
            return False
        return True


def read_keys(document: Json) -> Mapping[str, Key]:
    """The keys of a JWKS by their ids; what we cannot use is left out. Raises ValueError when it is no JWKS."""
    keys: dict[str, Key] = {}
    for item in items(document.get("keys"))[:_MOST_KEYS]:
        try:
            kid, key = _key(mapping(item))
        except (ValueError, KeyError, UnsupportedAlgorithm):  # RFC 7517 §5: pass over what is not understood
            continue
        keys.setdefault(kid, key)
    return keys


def _key(item: Json) -> tuple[str, Key]:
    if item.get("use", "sig") != "sig" or "verify" not in items(item.get("key_ops", ["verify"])):
        raise ValueError("not for signatures")
    algorithm, public = _KINDS[text(item["kty"])](item)
    if item.get("alg", algorithm) != algorithm:
        raise ValueError("for another algorithm")
    return text(item["kid"]), Key(algorithm, public)


def _rsa(item: Json) -> tuple[str, Public]:
    modulus, exponent = _integer(item["n"]), _integer(item["e"])
    if modulus.bit_length() not in _RSA_BITS:
        raise ValueError("too short or too long")
    return "RS256", RSAPublicNumbers(exponent, modulus).public_key()


def _curve(item: Json) -> tuple[str, Public]:
    if item["crv"] != "P-256":
        raise ValueError("another curve")
    return "ES256", EllipticCurvePublicNumbers(_integer(item["x"]), _integer(item["y"]), ec.SECP256R1()).public_key()


def _edwards(item: Json) -> tuple[str, Public]:
    if item["crv"] != "Ed25519":
        raise ValueError("another curve")
    return "EdDSA", Ed25519PublicKey.from_public_bytes(unarmoured(text(item["x"])))


_KINDS: Mapping[str, Callable[[Json], tuple[str, Public]]] = {"RSA": _rsa, "EC": _curve, "OKP": _edwards}


def _integer(value: object) -> int:
    return int.from_bytes(unarmoured(text(value)), "big")


def _as_der(signature: bytes) -> bytes:
    """RFC 7518 §3.4: both numbers one after the other, always of full length."""
    if len(signature) != 2 * _P256_BYTES:
        raise InvalidSignature
    first, second = signature[:_P256_BYTES], signature[_P256_BYTES:]
    return encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
