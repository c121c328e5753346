"""Comparison of secrets in constant time; no other code compares them."""

import hmac


def same_secret(given: str | bytes | None, wanted: str | bytes | None) -> bool:
    """Return whether two secrets are equal; an empty one or None equals nothing.

    The comparison takes the same time wherever they differ.
    """
    if not given or not wanted:
        return False
    return hmac.compare_digest(_octets(given), _octets(wanted))


def _octets(secret: str | bytes) -> bytes:
    return secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
