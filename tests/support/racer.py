"""A process that races another one for campaigns.

    python -m tests.support.racer STORE

Reads lines from standard input. `go RUN` sweeps a small grid there: one who loses says so at once, with
the exit code and the seconds it took; the winner says so when the next line has come and all is done.
"""

import sys
import tempfile
import time

import ibpdist as ibp
from ibpdist.base.errors import OutputInUse
from tests.support.grids import grid


def main(store):
    with tempfile.TemporaryDirectory() as folder:  # what is imported once takes long
        ibp.sweep(grid(store, truncation=3, restarts=1, steps=2), f"{folder}/run", serial=True)
    print("ready", flush=True)
    for line in sys.stdin:
        run, held = line.split()[1], []

        def hold(now, held=held):
            if not held:
                held.append(sys.stdin.readline())

        began = time.monotonic()
        try:
            ibp.sweep(grid(store, truncation=3, restarts=1, steps=2), run, serial=True, progress=hold)
        except OutputInUse as lost:
            print(f"lost {lost.code} {time.monotonic() - began:.3f}", flush=True)
        else:
            print("won", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
