"""``culture completion``: scripts that complete commands without starting a program.

The script contains all commands and options (``command_tree``), so completing takes no time. Only nicks are read from
agents.yaml, by sed.

- command: the command
- bash, fish, zsh: the script for each shell
"""
