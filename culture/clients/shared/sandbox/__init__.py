"""``sandbox: bwrap``: an agent's program sees its project, its own state and listed hosts, and nothing else.

bubblewrap builds the file system that the program sees (``mounts``) and puts it into namespaces of its own
(``bubblewrap``). There is never a network interface in there but a loopback of its own. ``forwarder`` runs inside and
passes what arrives on that loopback to one Unix socket; ``gate`` listens on that socket in the daemon, outside, and
connects to listed hosts only. ``needs`` says what each agent program cannot work without.
"""
