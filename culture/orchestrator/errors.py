"""What goes wrong in a team; the text says what, and what would help."""


class NotHired(Exception):
    """Nobody could be hired."""


class TeamFull(NotHired):
    """Nobody can be hired until somebody leaves, or more may be spent."""


class MemberNotStarted(Exception):
    """A member's daemon does not run."""


class NoAnswer(Exception):
    """A member's daemon did not do what it was asked for."""


class Stays(NoAnswer):
    """A member's daemon cannot be ended, not even by force."""


class NotTaken(Exception):
    """A task was not taken on."""
