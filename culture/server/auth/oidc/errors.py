"""What can be wrong with a token, or with the issuer."""


class Rejected(Exception):
    """The token is worth nothing here; the message says why and repeats nothing of it."""


class IssuerUnreachable(Exception):
    """The issuer does not say what it is asked, or not in time."""
