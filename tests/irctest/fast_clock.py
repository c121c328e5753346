"""Run culture in a process whose wall clock goes faster: ``fast_clock.py 30 server start …``.

The suite checks LIST by age, in minutes. Only the wall clock is hurried; timers and deadlines keep real time.
"""

import runpy
import sys
import time


def hurry(rate: float) -> None:
    """Let ``rate`` seconds pass on the wall clock for each real one, from here on."""
    real_time = time.time
    start = real_time()
    time.time = lambda: start + (real_time() - start) * rate
    time.time_ns = lambda: int(time.time() * 1_000_000_000)


if __name__ == "__main__":
    hurry(float(sys.argv.pop(1)))
    runpy.run_module("culture", run_name="__main__", alter_sys=True)
