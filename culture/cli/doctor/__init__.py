"""``culture doctor``: finds what is wrong on this machine, and says what to type.

A check is a function from the Inventory to findings; command.CHECKS lists them all. A check never changes anything. A
finding that can be repaired without loss carries a function for `--fix`, and no finding contains a secret.

- command: the command, the table of checks, and the output
- runner: runs all checks in parallel with a time limit
- inventory: what the checks look at, read once: files, servers, agents, probes of addresses
- agents: agents, their programs, logins and accounts; teams and wikis
- configuration: configuration files, and systemd units
- databases: SQLite files and growth
- exposure: what agents may do, and who can reach them
- files: permissions, leftovers of crashes, disk space
- machine: kernel, clock, versions, sockets
- network: ports, TLS, links

The flow: command.doctor → runner.run_checks(CHECKS, Inventory()) → the checks → command.as_text.
"""
