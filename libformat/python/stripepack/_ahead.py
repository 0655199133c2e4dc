"""Makes things ahead of who takes them, in a thread."""
import atexit
import os
import queue
import threading
import weakref

AHEAD = 2
_running = {}  # threads of this process, and what ends them


@atexit.register
def _end_all():
    """A thread that is in compiled code when the interpreter ends would abort the process."""
    for thread, ends in list(_running.items()):
        _end(*ends)
        thread.join()
        _wake(ends[1])


os.register_at_fork(after_in_child=_running.clear)


class Ahead:
    """Calls make() in a thread until it gives None or raises, with up to AHEAD results waiting.

    take(): the next result; None at the end, from then on. What make() raised is raised by take(),
    and the next take() goes on with make(). take() is for one thread; stop() may be called by another."""

    def __init__(self, make):
        self._results = queue.Queue(AHEAD)
        self._stop = threading.Event()
        self._make = make
        self._ended = False
        self._ends = self._stop, self._results, os.getpid()
        self._thread = None
        self._start()
        self._finalizer = weakref.finalize(self, _end, *self._ends)
        self._finalizer.atexit = False  # _end_all() does it

    def _start(self):
        self._thread = threading.Thread(target=_work, args=(self._make, self._results, self._stop),
                                        name="stripepack-ahead", daemon=True)
        _running[self._thread] = self._ends
        try:
            self._thread.start()
        except RuntimeError:  # the limit of threads is reached
            del _running[self._thread]
            raise

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
        if self._ends[2] == os.getpid():
            self._thread.join()
            _wake(self._results)


def _end(stop, results, process):
    if process != os.getpid():
        return  # no thread is here; one of the parent may have held the locks
    stop.set()
    try:
        while True:  # makes room for a thread that waits for it
            results.get_nowait()
    except queue.Empty:
        pass


def _wake(results):
    """Ends the waiting of a take() when no thread makes results any more."""
    try:
        results.put_nowait((None, None))
    except queue.Full:
        pass


def _work(make, results, stop):
    try:
        _make_all(make, results, stop)
    finally:
        _running.pop(threading.current_thread(), None)


def _make_all(make, results, stop):
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
