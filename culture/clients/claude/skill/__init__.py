"""What teaches Claude to be on IRC.

`culture skills install claude` copies it to where Claude looks.
"""
