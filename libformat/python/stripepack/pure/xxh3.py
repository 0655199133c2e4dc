"""XXH3-64 (seed 0), with numpy for what is long. The package xxhash is used where it is there."""
import struct

import numpy

try:
    from xxhash import xxh3_64_intdigest as _fast
except ImportError:
    _fast = None

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_M32 = (1 << 32) - 1
_M64 = (1 << 64) - 1
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5)
_START = (_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0])
_BLOCK = 1024  # 16 stripes of 64 bytes
_SLAB = 512  # blocks that are summed together
_SCRAMBLE = struct.unpack_from("<8Q", _SECRET, 128)
# Keys of the stripes of a block, and of the stripe that ends the input.
_KEYS = numpy.array([struct.unpack_from("<8Q", _SECRET, 8 * stripe) for stripe in range(16)],
                    numpy.uint64)
_LAST_KEYS = numpy.array([struct.unpack_from("<8Q", _SECRET, 121)], numpy.uint64)
_NEIGHBOUR = [1, 0, 3, 2, 5, 4, 7, 6]
_LOW = numpy.uint64(_M32)
_HALF = numpy.uint64(32)


def xxh3_64(data):
    """The hash of a bytes-like object, an integer."""
    if _fast is not None:
        return _fast(data)
    data = bytes(data)
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _middle(data)
    if size > 16:
        return _short(data)
    return _tiny(data)


def _word(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _half_word(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _fold(a, b):
    product = a * b
    return (product & _M64) ^ (product >> 64)


def _finish(value):
    value &= _M64
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & _M64
    return value ^ value >> 32


def _finish_tiny(value):
    value ^= value >> 33
    value = value * _P64[1] & _M64
    value ^= value >> 29
    value = value * _P64[2] & _M64
    return value ^ value >> 32


def _turn(value, bits):
    return (value << bits | value >> 64 - bits) & _M64


def _tiny(data):
    size = len(data)
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _finish(size + swapped + high + _fold(low, high))
    if size >= 4:
        value = _half_word(data, size - 4) | _half_word(data, 0) << 32
        value ^= _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value ^= _turn(value, 49) ^ _turn(value, 24)
        value = value * 0x9FB21C651E98DF25 & _M64
        value ^= (value >> 35) + size
        value = value * 0x9FB21C651E98DF25 & _M64
        return value ^ value >> 28
    if size > 0:
        value = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _finish_tiny(value ^ _half_word(_SECRET, 0) ^ _half_word(_SECRET, 4))
    return _finish_tiny(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _mix(data, at, key):
    return _fold(_word(data, at) ^ _word(_SECRET, key), _word(data, at + 8) ^ _word(_SECRET, key + 8))


def _short(data):
    size = len(data)
    total = size * _P64[0]
    for i in range((size - 1) // 32 + 1):
        total += _mix(data, 16 * i, 32 * i) + _mix(data, size - 16 * (i + 1), 32 * i + 16)
    return _finish(total)


def _middle(data):
    size = len(data)
    total = _finish(size * _P64[0] + sum(_mix(data, 16 * i, 16 * i) for i in range(8)))
    total += sum(_mix(data, 16 * i, 16 * i - 125) for i in range(8, size // 16))
    return _finish(total + _mix(data, size - 16, 119))


def _sums(words, keys):
    """What runs of stripes, shape (runs, stripes, 8), add to the lanes. Wraps around."""
    keyed = words ^ keys
    return ((keyed & _LOW) * (keyed >> _HALF)).sum(axis=1) + words.sum(axis=1)[:, _NEIGHBOUR]


def _long(data):
    size = len(data)
    lanes = list(_START)
    blocks = (size - 1) // _BLOCK
    for first in range(0, blocks, _SLAB):
        count = min(_SLAB, blocks - first)
        words = numpy.frombuffer(data, "<u8", count * 128, first * _BLOCK).reshape(count, 16, 8)
        for row in _sums(words, _KEYS).tolist():
            for i in range(8):
                value = (lanes[i] + row[i]) & _M64
                lanes[i] = (value ^ value >> 47 ^ _SCRAMBLE[i]) * _P32[0] & _M64
    stripes = (size - 1 - blocks * _BLOCK) // 64
    rest = numpy.frombuffer(data, "<u8", stripes * 8, blocks * _BLOCK).reshape(1, stripes, 8)
    last = numpy.frombuffer(data, "<u8", 8, size - 64).reshape(1, 1, 8)
    more = _sums(rest, _KEYS[:stripes]) + _sums(last, _LAST_KEYS)
    lanes = [(lane + add) & _M64 for lane, add in zip(lanes, more[0].tolist())]
    total = size * _P64[0]
    for i in range(4):
        total += _fold(lanes[2 * i] ^ _word(_SECRET, 11 + 16 * i),
                       lanes[2 * i + 1] ^ _word(_SECRET, 19 + 16 * i))
    return _finish(total)
