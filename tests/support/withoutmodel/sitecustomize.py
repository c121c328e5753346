"""On a program's path: as where the extra `semantic` was never installed."""

import sys

sys.modules["wordllama"] = None  # type: ignore[assignment]
