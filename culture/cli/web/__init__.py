"""``culture web``: runs the web page of a server, and manages who is logged in to it.

- command: the commands
- process: the process that serves the page
- account: the server account that the page uses for people
"""
