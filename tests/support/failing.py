"""Operations on files that fail, or end the process, at a number."""

import os
from pathlib import Path

OPERATIONS = [(os, "fsync"), (Path, "replace"), (Path, "rename"), (Path, "mkdir"), (Path, "unlink")]


class Crash(BaseException):
    """The end of the process."""


class Failing:
    """Lets the operation number `at` fail, all after it too if it is `lasting`, and counts them."""

    def __init__(self, at, failure, lasting=False):
        self.at, self.failure, self.lasting, self.seen = at, failure, lasting, 0

    def wrap(self, plain):
        def operation(*args, **options):
            self.seen += 1
            if self.seen == self.at or (self.lasting and self.seen > self.at):
                raise self.failure()
            return plain(*args, **options)

        return operation
