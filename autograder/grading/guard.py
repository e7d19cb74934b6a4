"""Between the warm parent and a submission: a process that starts it, ends it, and reports how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Any, NoReturn

from autograder.grading import confine
from autograder.grading.confine import NAMESPACES, WORK_FOLDER
from autograder.grading.limits import Limits


def guard(run: Callable[..., NoReturn], request: dict[str, Any], cells: int, channel: int) -> NoReturn:
    """Fork the process that ``run`` makes the submission's, wait for it or for the host's word, and report how
    it ended.

    The host sends ``i`` to interrupt a cell, ``m`` to have its memory measured, and ``k``, or nothing at all by
    closing, to end everything.
    """
    host = socket.socket(fileno=channel)
    limits, level = Limits(**request["limits"]), request["level"]
    confine.die_with_parent()
    folder = WORK_FOLDER
    try:
        if level == NAMESPACES:
            confine.leave_namespaces()
        else:
            confine.adopt_orphans()
            folder = tempfile.mkdtemp(prefix="submission-", dir=request.get("folder") or "/tmp")
        ready, told = os.pipe()
        status, ending = os.pipe()
        child = os.fork()
        if child == 0:
            host.close()
            os.close(ready)
            if level == NAMESPACES:
                _watch_over_namespace(ending)
            run(cells, told, limits, level, folder, request)
    except OSError as error:
        _report(host, {"failed": str(error)})
    for descriptor in (cells, told, ending):
        os.close(descriptor)
    with os.fdopen(ready, "rb") as said:
        if failed := said.read(1000):
            os.waitpid(child, 0)
            _report(host, {"failed": failed.decode("utf-8", "replace")})
    host.sendall(b'{"started": true}\n')
    exit_code, usage, held = _wait(host, child, status)
    if level != NAMESPACES:
        _end_descendants()
        shutil.rmtree(folder, ignore_errors=True)
    processor = usage.ru_utime + usage.ru_stime + time.process_time()
    _report(
        host,
        {
            "exit": exit_code,
            "processor": processor,
            "memory": usage.ru_maxrss * 1024,
            **held,
        },
    )


def _report(host: socket.socket, message: dict[str, Any]) -> NoReturn:
    with contextlib.suppress(OSError):
        host.sendall(json.dumps(message).encode() + b"\n")
    os._exit(0)


def _watch_over_namespace(ending: int) -> None:
    """Be the first process of the namespace, whose end is the end of all in it; return in a second one, which runs the
    submission. The first of a namespace cannot be killed from inside, so that a submission in its place that aborts
    would end otherwise than in a kernel, or not at all.
    """
    child = os.fork()
    if child == 0:
        return
    try:
        signal.signal(signal.SIGINT, lambda *_: os.kill(child, signal.SIGINT))
        os.closerange(0, ending)
        os.closerange(ending + 1, 65536)
        while (ended := os.waitpid(-1, 0))[0] != child:
            pass
        os.write(ending, str(os.waitstatus_to_exitcode(ended[1])).encode())
    finally:
        os._exit(0)


def _wait(host: socket.socket, child: int, status: int) -> tuple[int, resource.struct_rusage, dict[str, int]]:
    """Return the exit code, what was used and bytes held. ``status`` has the code if the child watches over another."""
    pidfd, held = os.pidfd_open(child), {"own": 0, "proportional": 0}
    watched = [host, pidfd]
    while True:
        readable, _, _ = select.select(watched, [], [])
        if pidfd in readable:
            _, ended, usage = os.wait4(child, 0)
            return int(os.read(status, 16) or os.waitstatus_to_exitcode(ended)), usage, held
        word = b""
        with contextlib.suppress(OSError):
            word = host.recv(1)
        if word == b"i":
            os.kill(child, signal.SIGINT)
            continue
        if word == b"m":
            held = _memory_held(_watched(child))
            host.sendall(b'{"measured": true}\n')
            continue
        os.kill(child, signal.SIGKILL)
        if not word:
            watched.remove(host)


def _watched(process: int) -> int:
    """Return the process that this one watches over, or itself where there is none."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/task/{process}/children") as children:
        return int((children.read().split() or [process])[0])
    return process


def _memory_held(process: int) -> dict[str, int]:
    """Return bytes: ``own`` is what one more such process takes, ``proportional`` has its part of what it shares."""
    held = {"own": 0, "proportional": 0}
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{process}/smaps_rollup") as lines:
        for line in lines:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                held["own"] += int(line.split()[1]) * 1024
            elif line.startswith("Pss:"):
                held["proportional"] = int(line.split()[1]) * 1024
    return held


def _end_descendants() -> None:
    """Kill what the submission left behind. Orphans come to this process, so that none is missed."""
    children = f"/proc/self/task/{os.getpid()}/children"
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with contextlib.suppress(OSError), open(children) as listed:
            for number in listed.read().split():
                with contextlib.suppress(OSError):
                    os.kill(int(number), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
