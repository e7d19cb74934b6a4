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


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the running code after ``seconds``, and again every half second until it gives way.

    Uses SIGALRM, which also ends a sleep. Outside the main thread, and on Windows, a watching thread raises at the
    next Python instruction instead. Code that stays inside one C call is not interrupted before that call returns,
    and a loop that catches BaseException inside itself only ends with its kernel.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def ring(signal_number: int, frame: Any) -> None:
            raise OutOfTime

        start, previous = time.monotonic(), signal.signal(signal.SIGALRM, ring)
        others_alarm, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            if others_alarm:
                left = max(others_alarm - (time.monotonic() - start), 0.001)
                signal.setitimer(signal.ITIMER_REAL, left, interval)
        return
    with _watching_thread(seconds):
        yield


@contextlib.contextmanager
def _watching_thread(seconds: float) -> Iterator[None]:
    import ctypes

    target, finished = threading.get_ident(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not finished.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), ctypes.py_object(OutOfTime))
            wait = 0.5

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
