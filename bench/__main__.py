"""``python -m bench``: the comparison."""

import sys

from bench.compare import main

if __name__ == "__main__":
    sys.exit(main())
