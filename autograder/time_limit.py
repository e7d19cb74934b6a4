"""A bound on the time that somebody else's code may take in this process."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any


class OutOfTime(BaseException):
    """Raised inside code that ran past its time. Not an Exception, so that ``except Exception`` lets it through."""


_AGAIN = 0.5
_PATIENCE = 3


class Clock:
    """Says whether so many seconds are over, from now on.

    Where the machine is busy with other work, code that got less than half of a processor may go on, up to three times
    as long: a crowded machine costs no points. A sleep cannot be told from that, and lasts as long.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.pause = seconds, min(_AGAIN, max(seconds / 2, 0.001))
        self._began, self._used = time.monotonic(), time.process_time()

    def is_over(self) -> bool:
        """Whether the time is used up."""
        passed, used = time.monotonic() - self._began, time.process_time() - self._used
        return passed >= self.seconds * _PATIENCE or (passed >= self.seconds and used >= self.seconds / 2)

    def next_look(self) -> float:
        """Return the seconds until it is worth asking again."""
        left = self.seconds - (time.monotonic() - self._began)
        return left if left > 0.001 else self.pause


@contextlib.contextmanager
def time_limit(clock: Clock) -> Iterator[None]:
    """Raise OutOfTime in the running code when the clock's time is over, and again until the code gives way.

    Uses SIGALRM, which also ends a sleep. Outside the main thread, and on Windows, a watching thread raises at the
    next Python instruction instead. Code that stays inside one C call is not interrupted before that call returns,
    and a loop that catches BaseException inside itself only ends with its kernel.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def ring(signal_number: int, frame: Any) -> None:
            if clock.is_over():
                raise OutOfTime

        start, previous = time.monotonic(), signal.signal(signal.SIGALRM, ring)
        others_alarm, interval = signal.setitimer(signal.ITIMER_REAL, clock.next_look(), clock.pause)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if others_alarm:
                left = max(others_alarm - (time.monotonic() - start), 0.001)
                signal.setitimer(signal.ITIMER_REAL, left, interval)
        return
    with _watching_thread(clock):
        yield


@contextlib.contextmanager
def _watching_thread(clock: Clock) -> Iterator[None]:
    import ctypes

    target, finished = threading.get_ident(), threading.Event()

    def watch() -> None:
        while not finished.wait(clock.next_look()):
            if clock.is_over():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), ctypes.py_object(OutOfTime))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
