"""Logins with the tokens of an OpenID provider: JWTs, checked against the keys that it publishes."""
