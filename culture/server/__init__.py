"""One IRC server: lines become messages, messages become events, events become lines.

| module | what it holds |
|---|---|
| ``ircd`` | puts the parts of a server together, starts and stops them |
| ``context`` | ``ServerParts`` and the ``Context`` that each handler gets |
| ``commands``, ``events``, ``errors`` | the table of verbs; all events; ``Refused`` and ``Failed`` |
| ``skill`` | the public interface of skills: ``Skill``, ``Host``, ``@hook`` |
| ``metrics``, ``metric_sources``, ``metrics_http`` | Prometheus metrics: registry, the server's own, the endpoint |
| ``database``, ``shapes`` | SQLite files with migrations; validation of our JSON files |
| ``net/`` | sockets: event loop, listeners, connections, TLS, WebSocket, connection limits |
| ``core/`` | the path of a message: dispatch, network state, router, rendering |
| ``handlers/`` | one function for each verb |
| ``auth/`` | accounts, SASL, OIDC, login by local uid, invitations |
| ``channels/`` | ownership and registration of channels, the reply to JOIN |
| ``subscriptions/`` | what clients asked to be told: MONITOR, metadata, read markers |
| ``skill_host/`` | finds, starts, guards and stops skills |
| ``backup/`` | all data of a server in one file, and back |

A message takes this way: ``net.connection`` reads bytes, ``core.dispatch`` makes them lines and looks up the verb,
``handlers.messages`` checks the sender's rights and makes a ``Said`` event, ``core.router`` applies and renders it and
queues the bytes for each session, and ``net.poller`` writes every queue once at the end of the turn.
"""
