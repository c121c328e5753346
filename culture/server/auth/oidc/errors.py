"""Errors of tokens and of their issuer."""


class Rejected(Exception):
    """The token is not accepted here; the exception's text says why without quoting the token."""


class IssuerUnreachable(Exception):
    """The issuer of tokens gave no usable answer, or none in time."""
