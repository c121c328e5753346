"""Shell completion: a script for each shell, with all commands in it, so that completing starts no program of ours."""
