"""``culture demo``: shows the main features within a minute, in a temporary home folder.

- command: the command; plays the scenes one after the other
- scenes: what happens in each scene, and the narrator who prints it
- stage: the servers, daemons and connections that run
- participants: who takes part; configuration files and playbooks
- home: the temporary folder, and the caretaker process that removes it if the demo is killed

The flow: command.demo → stage.running_stage starts two linked servers and four agents → each scene sends messages,
and waits for facts of the ledger that prove what happened → everything is stopped and deleted.
"""
