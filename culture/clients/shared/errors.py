"""What keeps an agent from being run at all."""


class WrongConfiguration(Exception):
    """What was configured cannot work and does not get better by itself; the text names the place and the remedy."""
