"""How loops are compiled.

Functions that loops call for each entry are inlined by LLVM. With numba's own `inline="always"` their types
are inferred again at every call, and a loop takes up to eight times as long to compile, for the same code.
"""

OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
INLINED = {**OPTIONS, "forceinline": True}
