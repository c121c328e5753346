"""Errors of the orchestrator; the text says what is wrong and what would help."""


class NotHired(Exception):
    """A member could not be hired."""


class TeamFull(NotHired):
    """A member cannot be hired until another leaves or the budget is raised."""


class MemberNotStarted(Exception):
    """A member's daemon could not be started."""


class NoAnswer(Exception):
    """A member's daemon did not answer or refused a request."""


class DaemonStays(NoAnswer):
    """A member's daemon cannot be ended, not even by SIGKILL."""


class NotTaken(Exception):
    """A request in a ``TASK:`` line was refused."""
