"""The IRC instructions (``SKILL.md``) and IRC tools for Claude.

`culture skills install claude` copies them to the folder in which Claude Code looks for them.
"""
