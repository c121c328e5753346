"""Whether count.py is right, and how long it takes."""

import time

from count import top

WORDS = [f"w{number * number % 4001}" for number in range(30_000)]

assert top("b a b c a b", 2) == [("b", 3), ("a", 2)], "wrong"
begun = time.perf_counter()
top(" ".join(WORDS), 10)
print(f"{1000 * (time.perf_counter() - begun):.1f} ms")
