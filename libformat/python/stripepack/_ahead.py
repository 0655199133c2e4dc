"""Makes things ahead of who takes them, in a thread."""
import queue
import threading
import weakref

AHEAD = 2


class Ahead:
    """Calls make() in a thread until it gives None or raises, with up to AHEAD results waiting.

    take(): the next result; None at the end, from then on. What make() raised is raised by take(),
    and the next take() goes on with make(). For one thread."""

    def __init__(self, make):
        self._results = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._make = make
        self._ended = False
        self._thread = None
        self._start()
        self._finalizer = weakref.finalize(self, _end, self._stop, self._results)

    def _start(self):
        self._thread = threading.Thread(target=_work, args=(self._make, self._results, self._stop),
                                        name="stripepack-ahead", daemon=True)
        self._thread.start()

    def take(self):
        if self._ended:
            return None
        result, error = self._results.get()
        if error is not None:
            self._thread.join()
            self._start()
            raise error
        self._ended = result is None
        return result

    def stop(self):
        """Drops what was made, and waits for what is being made."""
        self._ended = True
        self._finalizer()
        self._thread.join()


def _end(stop, results):
    stop.set()
    try:
        while True:  # makes room for a thread that waits for it
            results.get_nowait()
    except queue.Empty:
        pass


def _work(make, results, stop):
    while not stop.is_set():
        result, error = None, None
        try:
            result = make()
        except BaseException as raised:  # pylint: disable=broad-except
            error = raised
        while not stop.is_set():
            try:
                results.put((result, error), timeout=0.1)
                break
            except queue.Full:
                pass
        if result is None:
            return
        result = None  # not to be held while the next one is made
