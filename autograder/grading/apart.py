"""Calls in a process of their own, for an executor whose processes have other threads, as Dask's workers do.

Random numbers are a process's, not a thread's: whatever else draws one while the judge replays a reference gives the
reference other numbers than the student's code had. So each thread of a worker keeps a process that does one thing.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection
from typing import Any

_own = threading.local()
_ATTEMPTS = 2


class ApartExecutor(Executor):
    """Submits to another executor, whose workers hand each call on to their own process."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        """Schedule a call of a function that can be imported, with arguments that can be pickled."""
        return self._executor.submit(call_apart, function, *arguments, **options)


def call_apart(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a call gives in this thread's own process, started at first use, or raise what it raises.

    Raises RuntimeError when the process was ended from outside twice during the call.
    """
    for _ in range(_ATTEMPTS):
        connection = getattr(_own, "connection", None) or _start()
        try:
            connection.send((function, arguments, options))
            worked, result = connection.recv()
        except (EOFError, OSError):
            connection.close()
            _own.connection = None
            continue
        if not worked:
            raise result
        return result
    raise RuntimeError("the process that grades was ended from outside twice (is there enough memory?)")


def _start() -> Connection:
    ours, theirs = socket.socketpair()
    with theirs:
        # Not one of multiprocessing's own: Dask's workers are daemons, which may have none.
        _own.process = subprocess.Popen([sys.executable, "-m", "autograder.grading.apart"], stdin=theirs)
    _own.connection = Connection(ours.detach())
    return _own.connection


def main() -> None:
    """Answer calls on standard input, a socket, until it is closed."""
    from autograder.grading.command import without_slow_grammar
    from autograder.grading.grade import close_sandboxes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    without_slow_grammar()
    connection = Connection(os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    try:
        while True:
            function, arguments, options = connection.recv()
            connection.send(_answer(function, arguments, options))
    except (EOFError, OSError):
        pass
    finally:
        close_sandboxes()


def _answer(function: Callable[..., Any], arguments: tuple, options: dict[str, Any]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments, **options)
    except Exception as error:
        return False, error


if __name__ == "__main__":
    main()
