"""The command `culture`, and ``python -m culture``."""

import signal


def main() -> None:
    """Run the command line.

    Ctrl-C while its modules are imported ends the process by SIGINT, without cleanup.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, or somebody's
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from culture.cli import main as run  # what takes time

    run()


if __name__ == "__main__":
    main()
