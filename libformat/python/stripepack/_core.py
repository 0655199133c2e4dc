"""The compiled module, or where there is none, the same in Python."""
import importlib
import warnings

try:
    core = importlib.import_module("._stripepack", __package__)
    COMPILED = True
except ImportError as error:
    from . import pure as core
    COMPILED = False
    warnings.warn(f"stripepack reads in pure Python, which is slow: no compiled module ({error})",
                  RuntimeWarning, stacklevel=3)

ENGINES = {"auto": 0, "pread": 1, "pool": 2, "uring": 3, "mmap": 4}
ORDERS = {"shuffled": 0, "sequential": 1, "random": 2}
TAILS = {"drop": 0, "pad": 1, "exact": 2}
DIRECT = {"auto": 0, "on": 1, "off": 2}
KINDS = {1: "blob", 2: "int64", 3: "float32", 4: "float64"}
