"""Two processes that start a campaign on the same folder, again and again."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from queue import Queue

from tests.support.grids import HERE


@contextmanager
def racers(store, count=2):
    """Processes and a queue of what they say: (number, line)."""
    line = [sys.executable, "-m", "tests.support.racer", str(store)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": HERE}
    made = [subprocess.Popen(line, **pipes) for _ in range(count)]
    said = Queue()

    def listen(number):
        for line in made[number].stdout:
            said.put((number, line.split()))

    for number in range(count):
        threading.Thread(target=listen, args=(number,), daemon=True).start()
    try:
        for _ in made:
            assert said.get(timeout=120)[1] == ["ready"]
        yield made, said
    finally:
        for process in made:
            process.kill()
            process.wait(30)


def race(made, said, run):
    """One race: who won, and the exit code and seconds of the one who lost."""
    for process in made:
        process.stdin.write(f"go {run}\n")
        process.stdin.flush()
    loser, (word, code, seconds) = said.get(timeout=60)
    assert word == "lost"
    winner = made[1 - loser]
    winner.stdin.write("finish\n")
    winner.stdin.flush()
    assert said.get(timeout=60) == (1 - loser, ["won"])
    return 1 - loser, int(code), float(seconds)
