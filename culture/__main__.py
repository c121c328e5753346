"""The command `culture`, and ``python -m culture``."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded ends it as a signal does: nothing is to be put in order."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, or somebody's
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from culture.cli import main as run  # what takes time

    run()


if __name__ == "__main__":
    main()
