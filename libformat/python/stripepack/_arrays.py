"""Arrays that are used again once nobody holds them."""
import sys
import threading

import numpy

# The numbers of references to an array that only its list holds, as this Python counts them.
_probe = [numpy.empty(1)]
_FREE = sys.getrefcount(_probe[0])


class Arrays:
    """Gives arrays of uint8 for results that are made again and again. Fresh memory costs a page
    fault for every few KiB, of which a batch of pictures has thousands.

    An array is free as soon as nothing but this refers to it: views, tensors, memoryviews and
    whatever else is made of an array refer to it. For several threads. Copies and pickles begin
    empty."""

    KEPT = 5

    def __init__(self):
        self._arrays = []
        self._lock = threading.Lock()

    def take(self, shape):
        """An array of SHAPE whose contents are any."""
        with self._lock:
            arrays = self._arrays
            for i in range(len(arrays)):  # by number: a variable would be one more that holds it
                if sys.getrefcount(arrays[i]) == _FREE and arrays[i].shape == shape:
                    # To the end, so that what is of no use any more comes first.
                    arrays.append(arrays.pop(i))
                    return arrays[-1]
            if len(arrays) >= self.KEPT:
                del arrays[0]
            arrays.append(numpy.empty(shape, numpy.uint8))
            return arrays[-1]

    def __reduce__(self):
        return Arrays, ()
