"""Starts, finds, watches and ends processes.

Everything that runs in the background goes through here.

Two facts make a process safe to signal, and neither is its number alone, which the kernel gives to another process as
soon as the first is reaped:

- A **held file** says who runs: a process keeps a lock on its pid file for as long as it lives, and the kernel lets go
  of the lock when it dies, however it dies. A file that nobody holds means nothing, whatever it says.
- A **pidfd** stays with one process: it is opened first, then the identity is checked (the held file, the token, the
  session), and only then the signal is sent through it.

- ``handle``: pidfds: wait for an end, signal, end in order (SIGTERM, a deadline, SIGKILL)
- ``pid_file``: the file that a running process holds, with what it publishes about itself
- ``background``: a program started in a session of its own, its output in a log, until it is ready
- ``children``: what one command started, recorded with signals held back, so that Ctrl-C at any moment ends all of it
- ``pipes``: a program of asyncio's with pipes, whose end is seen though a grandchild holds them
- ``orphans``: what has no living parent of ours, found by its environment or its session, and ended
- ``log_rotation``: the log file of a process, kept below a size while others write to it too

A start and its end: ``background.BackgroundProcess`` starts a program → the program acquires its ``pid_file.PidFile``
and publishes in it that it is ready → ``BackgroundProcess.wait_until`` returns. Later, from any other process:
``pid_file.running`` finds it, ``pid_file.end`` ends it, and ``orphans.end_all`` ends what one left that was killed.
"""
