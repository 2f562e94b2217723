"""Sources of which only the size counts."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Sizes:
    rows: int
    columns: int
    height: int
    kind: type = np.float32

    @property
    def dtype(self):
        return np.dtype(self.kind)

    def bounds(self, index):
        return 0, min(self.rows, self.height)
