"""``python -m culture``."""

from culture.cli import main

if __name__ == "__main__":
    main()
