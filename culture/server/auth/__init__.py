"""Accounts and logins.

| module | what it holds |
|---|---|
| ``accounts``, ``account_store``, ``account_file`` | an account; all accounts in memory; their JSON file |
| ``account_watch`` | applies changes made by the command line while the server runs |
| ``authenticator`` | decides whether a connection may register, and as which account |
| ``password`` | SASLprep, SCRAM verifiers, tokens |
| ``credential_check``, ``login_attempts`` | checks in threads with equal timing; limits on failed logins |
| ``sasl``, ``sasl_framing`` | the SASL mechanisms as state machines; their messages on IRC lines |
| ``local_user`` | login by local uid |
| ``oidc/`` | login with the tokens of an OpenID provider |
| ``invitations`` | one-time keys for new people and linked servers |
"""
