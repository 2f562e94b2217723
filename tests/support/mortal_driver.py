"""A driver process that goes on with a run, and kills itself after a step.

    python -m tests.support.mortal_driver RUN STEP WORKERS

STEP 0 lets it live. The step is in the log when it dies, and not saved.
"""

import os
import signal
import sys

import ibpdist as ibp


def main(run, step, workers):
    def progress(now):
        if now.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    ibp.resume(run, progress=progress, **({"workers": workers} if workers else {"serial": True}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
