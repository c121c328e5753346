"""The team's journal and the state computed from it; `journal.py` explains how it works."""
