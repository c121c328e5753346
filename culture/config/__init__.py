"""The configuration files as frozen, validated models, and where files live.

| module | what it holds |
|---|---|
| ``model``, ``links``, ``oidc``, ``services``, ``skills`` | culture.yaml: the server and its blocks |
| ``agents``, ``sandbox`` | agents.yaml |
| ``team`` | team.yaml |
| ``values`` | types that all of them share: durations, names, secrets |
| ``listen_policy`` | which addresses need TLS and logins |
| ``load``, ``yaml_document`` | reads YAML with line numbers, and makes a model of it |
| ``errors``, ``error_messages`` | a mistake in a file, explained for the person who edits it |
| ``introspect``, ``provenance`` | which settings there are; the values in force and their origin |
| ``paths`` | all paths of files and sockets, private files |
| ``peer_uid``, ``process_owner`` | whose process is at the other end of a socket; agent or person |

``load.load_server`` reads a file: ``yaml_document.read`` gives values with lines, the model validates them, and
``error_messages.explain`` turns what pydantic found into problems with line, text and hint.
"""
