"""What becomes of options: each is looked at before the compiled module sees it."""
import operator


def choice(what, value, known):
    """The number of an option's value; ValueError names those there are."""
    try:
        return known[value]
    except (KeyError, TypeError):
        raise ValueError(f"{what} is {value!r}; choose one of {', '.join(known)}") from None


def integer(what, value, least=0, most=(1 << 64) - 1):
    """The number that an option is. TypeError where it is none, ValueError where it is beyond."""
    try:
        number = int(operator.index(value))  # of a bool, too
    except TypeError:
        raise TypeError(f"{what} is {value!r:.80}; it is a whole number") from None
    if number < least:
        raise ValueError(f"{what} is {number}; it is at least {least}")
    if number > most:
        raise ValueError(f"{what} is {number}; it is at most {most}")
    return number


def text(what, value):
    """The text that an option is. TypeError where it is none, ValueError for a zero byte."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r:.80}; it is text")
    return whole(what, value)


def whole(what, value):
    """value, text or bytes. ValueError where it has a zero byte, at which C would end it."""
    if (b"\0" if isinstance(value, bytes) else "\0") in value:
        raise ValueError(f"{what} has a zero byte in it")
    return value

