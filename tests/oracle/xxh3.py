"""XXH3 with seed 0 and the default secret, in pure Python.

Written from the public specification of xxHash 0.8. Slow beside C, but about 20 MB/s on long
inputs, where the eight lanes of a whole block are summed by column.
"""

import operator
import struct

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_M32 = (1 << 32) - 1
_M64 = (1 << 64) - 1

_P32_1 = 0x9E3779B1
_P32_2 = 0x85EBCA77
_P32_3 = 0xC2B2AE3D
_P64_1 = 0x9E3779B185EBCA87
_P64_2 = 0xC2B2AE3D27D4EB4F
_P64_3 = 0x165667B19E3779F9
_P64_4 = 0x85EBCA77C2B2AE63
_P64_5 = 0x27D4EB2F165667C5
_MX1 = 0x165667919E3779F9
_MX2 = 0x9FB21C651E98DF25

_STRIPE = 64
_BLOCK = 1024  # 16 stripes: the secret moves on by 8 bytes a stripe
_BLOCK_KEYS = [
    word for stripe in range(16) for word in struct.unpack_from("<8Q", SECRET, 8 * stripe)
]
_BLOCK_WORDS = struct.Struct("<128Q")
_SCRAMBLE_KEYS = struct.unpack_from("<8Q", SECRET, 128)
_LAST_KEYS = struct.unpack_from("<8Q", SECRET, 121)


def xxh3_64(data):
    """The 64-bit hash of a bytes-like object, as an integer."""
    data = bytes(data)
    size = len(data)
    if size > 240:
        return _merge(_accumulate(data), 11, size * _P64_1)
    if size > 128:
        return _mid_64(data)
    if size > 16:
        return _short_64(data)
    return _tiny_64(data)


def xxh3_128(data):
    """The 128-bit hash of a bytes-like object, as (low, high)."""
    data = bytes(data)
    size = len(data)
    if size > 240:
        lanes = _accumulate(data)
        return _merge(lanes, 11, size * _P64_1), _merge(lanes, 117, ~(size * _P64_2) & _M64)
    if size > 16:
        return _mid_128(data)
    return _tiny_128(data)


# --- Steps that several lengths share ------------------------------------------------------------


def _u32(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data, at):
    return int.from_bytes(data[at : at + 8], "little")


def _swap32(value):
    return int.from_bytes(value.to_bytes(4, "little"), "big")


def _swap64(value):
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def _rotate64(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & _M64


def _fold(a, b):
    product = a * b
    return (product & _M64) ^ (product >> 64)


def _avalanche(h):
    h &= _M64
    h ^= h >> 37
    h = h * _MX1 & _M64
    return h ^ (h >> 32)


def _avalanche_xxh64(h):
    h ^= h >> 33
    h = h * _P64_2 & _M64
    h ^= h >> 29
    h = h * _P64_3 & _M64
    return h ^ (h >> 32)


def _mix16(data, at, secret_at):
    return _fold(
        _u64(data, at) ^ _u64(SECRET, secret_at), _u64(data, at + 8) ^ _u64(SECRET, secret_at + 8)
    )


# --- 0 to 16 bytes -------------------------------------------------------------------------------


def _tiny_64(data):
    size = len(data)
    if size > 8:
        low = _u64(data, 0) ^ _u64(SECRET, 24) ^ _u64(SECRET, 32)
        high = _u64(data, size - 8) ^ _u64(SECRET, 40) ^ _u64(SECRET, 48)
        return _avalanche(size + _swap64(low) + high + _fold(low, high))
    if size >= 4:
        both = _u32(data, size - 4) + (_u32(data, 0) << 32)
        h = both ^ _u64(SECRET, 8) ^ _u64(SECRET, 16)
        h ^= _rotate64(h, 49) ^ _rotate64(h, 24)
        h = h * _MX2 & _M64
        h ^= (h >> 35) + size
        h = h * _MX2 & _M64
        return h ^ (h >> 28)
    if size > 0:
        return _avalanche_xxh64(_combine_1_to_3(data) ^ _u32(SECRET, 0) ^ _u32(SECRET, 4))
    return _avalanche_xxh64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _combine_1_to_3(data):
    size = len(data)
    return data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8


def _tiny_128(data):
    size = len(data)
    if size > 8:
        low_in = _u64(data, 0)
        high_in = _u64(data, size - 8)
        product = (low_in ^ high_in ^ _u64(SECRET, 32) ^ _u64(SECRET, 40)) * _P64_1
        low = ((product & _M64) + ((size - 1) << 54)) & _M64
        high_in ^= _u64(SECRET, 48) ^ _u64(SECRET, 56)
        high = ((product >> 64) + high_in + (high_in & _M32) * (_P32_2 - 1)) & _M64
        low ^= _swap64(high)
        product = low * _P64_2
        return _avalanche(product & _M64), _avalanche((product >> 64) + high * _P64_2)
    if size >= 4:
        both = _u32(data, 0) + (_u32(data, size - 4) << 32)
        product = (both ^ _u64(SECRET, 16) ^ _u64(SECRET, 24)) * (_P64_1 + (size << 2))
        low = product & _M64
        high = ((product >> 64) + (low << 1)) & _M64
        low ^= high >> 3
        low ^= low >> 35
        low = low * _MX2 & _M64
        return low ^ (low >> 28), _avalanche(high)
    if size > 0:
        low = _combine_1_to_3(data)
        swapped = _swap32(low)
        high = ((swapped << 13) | (swapped >> 19)) & _M32
        return (
            _avalanche_xxh64(low ^ _u32(SECRET, 0) ^ _u32(SECRET, 4)),
            _avalanche_xxh64(high ^ _u32(SECRET, 8) ^ _u32(SECRET, 12)),
        )
    return (
        _avalanche_xxh64(_u64(SECRET, 64) ^ _u64(SECRET, 72)),
        _avalanche_xxh64(_u64(SECRET, 80) ^ _u64(SECRET, 88)),
    )


# --- 17 to 240 bytes -----------------------------------------------------------------------------


def _short_64(data):
    size = len(data)
    acc = size * _P64_1
    for pair in range((size - 1) // 32 + 1):
        acc += _mix16(data, 16 * pair, 32 * pair)
        acc += _mix16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(acc)


def _mid_64(data):
    size = len(data)
    acc = size * _P64_1 + sum(_mix16(data, 16 * i, 16 * i) for i in range(8))
    acc = _avalanche(acc)
    acc += sum(_mix16(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(acc + _mix16(data, size - 16, 136 - 17))


def _mix32(low, high, data, first, second, secret_at):
    low = (low + _mix16(data, first, secret_at)) & _M64
    low ^= (_u64(data, second) + _u64(data, second + 8)) & _M64
    high = (high + _mix16(data, second, secret_at + 16)) & _M64
    high ^= (_u64(data, first) + _u64(data, first + 8)) & _M64
    return low, high


def _mid_128(data):
    size = len(data)
    low, high = size * _P64_1 & _M64, 0
    if size <= 128:
        for pair in reversed(range((size - 1) // 32 + 1)):
            low, high = _mix32(
                low, high, data, 16 * pair, size - 16 * (pair + 1), 32 * pair
            )
    else:
        for at in range(0, 128, 32):
            low, high = _mix32(low, high, data, at, at + 16, at)
        low, high = _avalanche(low), _avalanche(high)
        for at in range(128, size - 31, 32):
            low, high = _mix32(low, high, data, at, at + 16, at - 128 + 3)
        low, high = _mix32(low, high, data, size - 16, size - 32, 136 - 17 - 16)
    return (
        _avalanche(low + high),
        -_avalanche(low * _P64_1 + high * _P64_4 + size * _P64_2) & _M64,
    )


# --- More than 240 bytes -------------------------------------------------------------------------


def _add_stripes(lanes, words, keys):
    """Adds whole stripes, column by column. Lanes may grow beyond 64 bits until the next scramble."""
    keyed = list(map(operator.xor, words, keys))
    for lane in range(8):
        lanes[lane] += sum(words[lane ^ 1 :: 8])
        lanes[lane] += sum([(key & _M32) * (key >> 32) for key in keyed[lane::8]])


def _accumulate(data):
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    size = len(data)
    blocks = (size - 1) // _BLOCK
    for block in range(blocks):
        _add_stripes(lanes, _BLOCK_WORDS.unpack_from(data, block * _BLOCK), _BLOCK_KEYS)
        for lane, key in enumerate(_SCRAMBLE_KEYS):
            value = lanes[lane] & _M64
            lanes[lane] = (value ^ (value >> 47) ^ key) * _P32_1 & _M64
    stripes = (size - 1 - blocks * _BLOCK) // _STRIPE
    if stripes:
        words = struct.unpack_from("<%dQ" % (8 * stripes), data, blocks * _BLOCK)
        _add_stripes(lanes, words, _BLOCK_KEYS[: 8 * stripes])
    _add_stripes(lanes, struct.unpack_from("<8Q", data, size - _STRIPE), _LAST_KEYS)
    return [lane & _M64 for lane in lanes]


def _merge(lanes, secret_at, start):
    for i in range(4):
        start += _fold(
            lanes[2 * i] ^ _u64(SECRET, secret_at + 16 * i),
            lanes[2 * i + 1] ^ _u64(SECRET, secret_at + 16 * i + 8),
        )
    return _avalanche(start)
