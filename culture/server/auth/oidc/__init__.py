"""Logins with the tokens (JWTs) of an OpenID provider, checked against its published keys."""
