"""The history, from the words of a text to what a client reads."""
