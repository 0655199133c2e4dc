"""Pictures to tensors: JPEG, PNG and WebP decoded to 8-bit RGB by libstripepack-image, in its threads.

    from stripepack.image import RandomResizedCrop
    for batch in stripepack.Loader(dataset, batch=256, decode=RandomResizedCrop(224, flip=0.5)):
        batch.pixels                          # uint8, shape (256, 224, 224, 3)

    decode_many([jpeg, png], CenterCrop(224))             # the same without a loader
    decode(jpeg, FullDecode())                            # one, in its own size

What happens to a picture is a function of the operation, seed, epoch and the number of the sample:
the same on any number of ranks and threads (docs/IMAGES.md has every rule, and what becomes of grey,
CMYK, alpha, 16 bits). Importing this needs the compiled module _image: ImportError where it was not
built. Errors are stripepack.Error, whose .code tells what a picture is that cannot be decoded:
"damaged", "unsupported" (another format, or over max_pixels), "not_this_format" (no picture at all).
"""
import dataclasses
import functools
import threading

import numpy

from . import _image
from ._arrays import Arrays
from ._errors import error
from ._options import integer

_FORMATS = {1: "jpeg", 2: "png", 3: "webp"}
_LAYOUTS = {"HWC": 0, "CHW": 1}
# As in stripepack.h.
_CODES = {1: "invalid_argument", 2: "not_this_format", 3: "unsupported", 4: "damaged", 9: "no_memory",
          11: "partial", 14: "internal"}


def _raise(code, message, **facts):
    if code == 1:
        raise ValueError(message)
    raise error(_CODES.get(code, "internal"), message, **facts)


class Pool:
    """Threads for decoding, shared by any number of callers. threads: 0: as many as the CPUs that the
    process may run on. They start when first needed, in each process anew, so that a pool may be
    used after fork."""

    def __init__(self, threads=0):
        self._raw = _image.Pool(integer("threads", threads, 0, (1 << 32) - 1))

    @property
    def threads(self):
        """How many, the calling one among them."""
        return self._raw.threads

    def __reduce__(self):
        return Pool, ()


_default = {}
_default_lock = threading.Lock()


def default_pool():
    """The Pool that is used where none is named."""
    with _default_lock:
        if "pool" not in _default:
            _default["pool"] = Pool()
        return _default["pool"]


def set_threads(threads):
    """Makes a default pool of so many threads; 0: of all CPUs that the process may run on."""
    pool = Pool(threads)
    with _default_lock:
        _default["pool"] = pool


_COMMON = {
    "layout": (str, "HWC"),
    "flip": (float, 0.0),
    "exif_orientation": (bool, False),
    "max_pixels": (int, 178_956_970),
    "field": ("str | None", None),
    "bad": (str, "raise"),
    "seed": ("int | None", None),
    "pool": ("Pool | None", dataclasses.field(default=None, repr=False, compare=False)),
}


def _operation(cls):
    """A dataclass of its own fields and, behind them, those that all operations have."""
    annotations = dict(cls.__dict__.get("__annotations__", {}))
    for name, (kind, default) in _COMMON.items():
        annotations[name] = kind
        setattr(cls, name, default)
    cls.__annotations__ = annotations
    return dataclasses.dataclass(frozen=True)(cls)


class _Operation:
    """What all operations take:

    layout: "HWC", pixels of shape (height, width, 3), or "CHW", (3, height, width). uint8, R G B.
    flip: probability of mirroring left and right, 0 to 1.
    exif_orientation: turn the picture upright first, as its EXIF says. Cameras' pictures want it;
    what was trained without it should go on without.
    max_pixels: pictures of more are refused with "unsupported".
    field: the loader's field with the picture; None: its first field of bytes.
    bad: what Loader does where a picture cannot be decoded: "raise" Error, or give "zeros" and list
    its place in Batch.undecoded.
    seed: None: the loader's.
    pool: a Pool; None: default_pool().
    """

    def __post_init__(self):
        if self.layout not in list(_LAYOUTS):
            raise ValueError(f"layout is {self.layout!r}; choose one of HWC, CHW")
        if self.bad not in ("raise", "zeros"):
            raise ValueError(f"bad is {self.bad!r}; choose one of raise, zeros")
        integer("max_pixels", self.max_pixels, 1)
        if self.seed is not None:
            integer("seed", self.seed)
        if self.pool is not None and not isinstance(self.pool, Pool):
            raise TypeError(f"pool is {self.pool!r:.80}; it is a Pool")
        _, code, message = _image.plan(1, 1, self._ops(), 0, 0, 0)
        if code != 0:
            raise ValueError(message)

    def _size(self):
        """(height, width) of what is made; None where that depends on the picture."""
        return None

    def _own_ops(self):
        raise NotImplementedError

    def _ops(self):
        return {"layout": _LAYOUTS[self.layout], "flip_probability": self.flip,
                "exif_orientation": int(self.exif_orientation), "max_pixels": self.max_pixels,
                **self._own_ops()}

    @functools.cached_property
    def _ops_made(self):
        return self._ops()

    @functools.cached_property
    def _arrays(self):
        return Arrays()

    def shape(self, count):
        """Of the pixels of COUNT pictures: (count, height, width, 3) or (count, 3, height, width);
        None where pictures keep sizes of their own."""
        size = self._size()
        if size is None:
            return None
        return (count, 3, *size) if self.layout == "CHW" else (count, *size, 3)

    def crop(self, width, height, seed=0, epoch=0, id=0):  # pylint: disable=redefined-builtin
        """What is done to a picture of width x height (after the turn by EXIF) as sample ID: a dict
        with left, top, right, bottom (floats, the part that is taken), width, height (of what is
        made of it) and flipped. To do the same to a mask or to boxes."""
        found, code, message = _image.plan(width, height, self._ops_made, seed, epoch, id)
        if code != 0:
            _raise(code, message)
        return found

    def decode_batch(self, batch, epoch=0, seed=0):
        """The pixels of a Batch: a uint8 array of shape(len(batch)), or where pictures keep their
        own sizes, a list of arrays. Loader calls this for its decode. The array is used again for a
        later batch when nothing refers to it any more."""
        name = self.field
        if name is None:
            name = next((key for key in batch.keys() if isinstance(batch[key], list)), None)
            if name is None:
                raise KeyError("this batch has no field of bytes")
        shape = self.shape(len(batch[name]))
        pixels, codes, code, message = _decode(batch[name], self,
                                               seed if self.seed is None else self.seed, epoch,
                                               batch.ids, shape and self._arrays.take(shape),
                                               self.pool)
        batch.undecoded = numpy.flatnonzero(codes)
        if len(batch.undecoded) == 0 and code == 0:
            return pixels
        if self.bad == "raise" or code != 11:
            place = int(batch.undecoded[0]) if len(batch.undecoded) else 0
            code = int(codes[place]) or code
            _raise(code, f"sample {int(batch.ids[place])}: {message}")
        for place in batch.undecoded:
            if isinstance(pixels, list):
                pixels[place] = numpy.zeros((3, 0, 0) if self.layout == "CHW" else (0, 0, 3),
                                            numpy.uint8)
            else:
                pixels[place] = 0
        return pixels


def _pair(size):
    """(height, width) of a number or a pair."""
    if hasattr(size, "__index__"):
        size = size, size
    try:
        height, width = size
    except (TypeError, ValueError):
        raise TypeError(f"size is {size!r:.80}; it is a number, or (height, width)") from None
    return integer("height", height, 1, 65535), integer("width", width, 1, 65535)


def _span(name, span):
    """The least and the largest value of an option."""
    try:
        least, largest = map(float, span)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {span!r:.80}; it is two numbers, the least and the largest") from None
    return least, largest


@_operation
class RandomResizedCrop(_Operation):
    """A part of the picture chosen at random, resized to size: torchvision's augmentation for training.

    size: a number, or (height, width). scale: least and largest part of the area; ratio: least and
    largest width / height. Bilinear with antialias. Pixels: uint8, (height, width, 3) each.
    flip, layout and the rest: as _Operation says.
    """

    size: "int | tuple[int, int]" = 224
    scale: "tuple[float, float]" = (0.08, 1.0)
    ratio: "tuple[float, float]" = (3 / 4, 4 / 3)

    def _size(self):
        return _pair(self.size)

    def _own_ops(self):
        height, width = _pair(self.size)
        scale, ratio = _span("scale", self.scale), _span("ratio", self.ratio)
        return {"kind": 4, "width": width, "height": height, "scale_min": scale[0],
                "scale_max": scale[1], "ratio_min": ratio[0], "ratio_max": ratio[1]}


@_operation
class CenterCrop(_Operation):
    """The shorter side resized to resize, and of that the middle: what validation uses.

    size: a number, or (height, width). resize: None: 8/7 of the larger side (256 for 224). Bilinear
    with antialias. Pixels: uint8, (height, width, 3) each.
    """

    size: "int | tuple[int, int]" = 224
    resize: "int | None" = None

    def _size(self):
        return _pair(self.size)

    def _own_ops(self):
        height, width = _pair(self.size)
        short = (round(max(height, width) * 8 / 7) if self.resize is None
                 else integer("resize", self.resize, 1, 65535))
        return {"kind": 3, "width": width, "height": height, "short_side": short}


@_operation
class Resize(_Operation):
    """All of the picture, resized. size: (height, width) exactly, or a number, which the shorter side
    becomes, the other in proportion. Bilinear with antialias. Pixels: uint8, (height, width, 3) each;
    with a number a batch is a list of arrays, for each picture has a shape of its own.
    """

    size: "int | tuple[int, int]" = 256

    def _size(self):
        return None if isinstance(self.size, int) else _pair(self.size)

    def _own_ops(self):
        if isinstance(self.size, int):
            return {"kind": 2, "short_side": integer("size", self.size, 1, 65535)}
        height, width = _pair(self.size)
        return {"kind": 1, "width": width, "height": height}


@_operation
class FullDecode(_Operation):
    """All of the picture in its own size, the very pixels that libjpeg, libpng and libwebp give.
    Pixels: uint8, (height, width, 3) each; a batch is a list of arrays."""

    def _own_ops(self):
        return {"kind": 0}


def _decode(pictures, op, seed, epoch, ids, out, pool):
    """(pixels, codes, code, message)"""
    count = len(pictures[0]) if isinstance(pictures, tuple) else len(pictures)
    ids = numpy.arange(count, dtype=numpy.uint64) if ids is None else ids
    raw = (pool or default_pool())._raw
    shape = op.shape(count)
    if shape is None:
        if out is not None:
            raise ValueError("out needs pictures of one size")
        arrays, codes, code, message = raw.decode_each(pictures, op._ops_made, seed, epoch, ids)
        return arrays, codes, code, message
    if out is None:
        out = numpy.empty(shape, numpy.uint8)
    elif out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, not {shape}")
    codes, code, message = raw.decode_many(pictures, op._ops_made, seed, epoch, ids, out)
    return out, codes, code, message


def decode_many(pictures, op, seed=0, epoch=0, ids=None, out=None, pool=None, codes=False):
    """Decodes pictures: objects with bytes, or a tuple of two arrays of uint64, addresses and sizes.

    ids: numbers of the samples, which choose what is random (None: 0, 1, ...). out: where to put the
    pixels, a uint8 array of op.shape(count) in C order; None: a new one. Gives that array, or where
    pictures keep sizes of their own, a list of arrays. Raises Error for the first picture that
    cannot be decoded; with codes=True it does not, and gives (pixels, codes): codes an int32 array
    with 0 for each that was decoded (others as in stripepack.h; their pixels are any, in a list
    None).
    """
    pixels, found, code, message = _decode(pictures, op, seed, epoch, ids, out, pool)
    if code not in (0, 11) or (code == 11 and not codes):
        bad = numpy.flatnonzero(found)
        _raise(int(found[bad[0]]) if len(bad) else code, message)
    return (pixels, found) if codes else pixels


def decode(picture, op, seed=0, epoch=0, id=0):  # pylint: disable=redefined-builtin
    """Decodes one picture in the calling thread: a uint8 array, (height, width, 3), or with layout
    "CHW", (3, height, width). Raises Error."""
    raw = _alone()._raw
    arrays, codes, code, message = raw.decode_each([picture], op._ops_made, seed, epoch, [id])
    if code != 0:
        _raise(int(codes[0]) or code, message.partition("is number 0: ")[2] or message)
    return arrays[0]


@functools.lru_cache(None)
def _alone():
    return Pool(1)


def info(picture):
    """What the headers of a picture say: a dict with format ("jpeg", "png", "webp"), width, height,
    channels, depth (as stored) and orientation (EXIF's, 1 to 8). Raises Error."""
    found, code, message = _image.info(picture)
    if code != 0:
        _raise(code, message)
    found["format"] = _FORMATS[found["format"]]
    return found


def formats():
    """The formats that this build decodes, of "jpeg", "png", "webp"."""
    return [name for number, name in _FORMATS.items() if _image.decodes(number)]
