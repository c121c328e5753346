"""Letters that nobody sees, though Unicode counts them among letters and marks."""

import re

SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They say how the letter before them is drawn; many in a row are a text that only programs read."""
UNSEEN_LETTERS = re.compile(f"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0{SELECTORS}]")
