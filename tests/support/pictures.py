"""Pictures for tests, made of bytes: no image library is needed."""

import base64
import os
import random

# A baseline JPEG, 16 pixels wide, 24 high, one component (grey).
_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZG"
    "NywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wAALCAAYABABAREA/8QAFgABAQEAAAAAAAAAAAAAAAAABgUE/8QAIxAA"
    "AgICAQMFAQAAAAAAAAAAAQIDEQQFABIhQQYiMWHwUf/aAAgBAQAAPwCNoNUGVWYUBx1jx4urwGzcpAkEXSXY1YBI"
    "F1f38DufgAkgcxabDjhxlkmZUjjXrZnICgf0k+B34f8AVe3lz9nJroHZUxJXRmRmUXTIRXbqJBINivA7As9z1RuB"
    "ptfBhYsxTPkKSAKCGVPcQwNFT7gAVN2tjzfC2l1xtbUX9/v3bn//2Q==")
HEIGHT, WIDTH = 24, 16


def jpeg(seed, bytes_wanted=0):
    """A whole, decodable JPEG that differs for each seed: comment segments carry what differs and
    bring it to exactly `bytes_wanted`."""
    source = random.Random(seed)
    room = max(bytes_wanted - len(_JPEG), 16)
    comments = []
    while room > 0:
        size = min(room, 65535 + 2)
        if 0 < room - size < 16:  # the next one would be too short to exist
            size -= 16
        comments.append(b"\xff\xfe" + (size - 2).to_bytes(2, "big") + source.randbytes(size - 4))
        room -= size
    return _JPEG[:2] + b"".join(comments) + _JPEG[2:]


def cut_jpeg(seed):
    """A JPEG that ends in the middle of its scan."""
    whole = jpeg(seed)
    return whole[:len(whole) - 12]


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_folder(root, counts, smallest=700, largest=9000, seed=1):
    """root/<class>/<number>.jpg, so many of each class as `counts` says; sizes vary. Returns
    {key: bytes}."""
    source = random.Random(seed)
    made = {}
    for name, count in counts.items():
        os.makedirs(os.path.join(root, name), exist_ok=True)
        for number in range(count):
            key = "%s/%05d.jpg" % (name, number)
            made[key] = jpeg("%s %s" % (seed, key), source.randint(smallest, largest))
            with open(os.path.join(root, key), "wb") as file:
                file.write(made[key])
    return made
