"""The compiled module, or where there is none, the same in Python."""
import warnings

try:
    from . import _stripepack as core
    COMPILED = True
except ImportError as error:
    from . import pure as core
    COMPILED = False
    warnings.warn(f"stripepack reads in pure Python, which is slow: no compiled module ({error})",
                  RuntimeWarning, stacklevel=3)

ENGINES = {"auto": 0, "pread": 1, "pool": 2, "uring": 3, "mmap": 4}
ORDERS = {"shuffled": 0, "sequential": 1, "random": 2}
TAILS = {"drop": 0, "pad": 1, "exact": 2}
KINDS = {1: "blob", 2: "int64", 3: "float32", 4: "float64"}


def choice(what, value, known):
    """The number of an option's value; ValueError names those there are."""
    try:
        return known[value]
    except (KeyError, TypeError):
        raise ValueError(f"{what} is {value!r}; choose one of {', '.join(known)}") from None


def error(code, message, path=""):
    """A stripepack.Error to raise."""
    made = core.Error(message)
    made.code, made.path = code, path
    made.shard = made.offset = None
    made.os_errno = 0
    return made
