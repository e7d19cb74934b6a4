"""The warm parent: a process that has imported what an assignment needs and forks once for each submission.

It runs inside the sandbox, has one thread, and never runs a student's byte itself. Its host asks for a submission on
a socket and hands over two more: ``cells``, which the fork talks to, and ``guard``, on which the process between them
reports how it ended. The messages are lines of JSON in both directions.

    python -m autograder.grading.worker        started by sandbox.py, with the socket as standard input
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import gc
import importlib
import json
import linecache
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from autograder.grading import confine
from autograder.grading.confine import LANDLOCK, NAMESPACES, WORK_FOLDER
from autograder.grading.guard import guard
from autograder.grading.limits import Limits
from autograder.grading.seal import Seal
from autograder.grading.ticket import EMISSION_TYPE

LARGEST_REQUEST = 1_000_000
TRIAL_SECONDS = 30
# Made before the first fork, and hidden from the garbage collector's lists with everything else that is there by then.
_seal: Seal | None = None
_FIGURES = "module://matplotlib_inline.backend_inline"
_NEVER_EARLY = ("matplotlib_inline.backend_inline", "__mp_main__", "__main__", "debugpy", "_pydev", "pydevd")


def main() -> None:
    """Drop root, load what was asked for, and serve submissions until the host closes the socket."""
    if os.getuid() == 0 or os.geteuid() == 0:
        sys.exit("The worker does not run as root.")
    control = socket.socket(fileno=os.dup(0))
    _null(0)
    confine.die_with_parent()
    confine.hide_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, (order, trial), _, _ = socket.recv_fds(control, LARGEST_REQUEST, 2)
    control.sendall(json.dumps(prepare(order, trial)).encode())
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 2)
        _reap(os.WNOHANG if data else 0)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            guard(_submission, json.loads(data), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(options: int) -> None:
    """Wait for guards that have ended, so that what they used is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def prepare(ordered: int, trial: int) -> dict[str, Any]:
    """Import and warm up what the order names; return what the host needs to know. Ends up with a single thread.

    ``ordered`` and ``trial`` are descriptors of JSON: the order, and the reference solution's cells. The cells are read
    by a fork alone, so that no text of a solution was ever in the memory that submissions inherit.
    """
    from autograder.grading.kernel import make_kernel

    began = time.perf_counter()
    with os.fdopen(ordered, encoding="utf-8") as file:
        order = json.load(file)
    missing = []
    for statement in order["imports"]:
        try:
            exec(statement, {"__name__": "preload"})  # From the instructor's own source, never from a submission.
        except Exception as error:
            missing.append(f"{statement}: {type(error).__name__}: {error}")
    _warm_up(order["exercises"])
    kernel = make_kernel()
    loaded = order.get("modules")
    if loaded is None:
        loaded = _modules_of(trial)
    os.close(trial)
    for name in loaded or []:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    import tornado.ioloop  # noqa: F401 - what every fork would load first

    if order["exercises"]:
        from autograder.grading.forget import forget_answers

        forget_answers(order["exercises"])
        linecache.clearcache()  # A warning on the way keeps the source of whatever called it.
    global _seal
    _seal = Seal()
    gc.collect()
    gc.freeze()
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
    return {
        "language_info": kernel.language_info,
        "missing": missing,
        "modules": loaded or [],
        "threads": threads,
        "seconds": time.perf_counter() - began,
        "landlock": confine.landlock_version(),
        "seccomp": confine.seccomp_is_there(),
    }


def _warm_up(exercises: Sequence[str]) -> None:
    """Watch each reference once as a check does, so that what is loaded at first use is there before the fork."""
    if not exercises:
        return
    import torch

    torch.set_num_threads(1)
    from autograder.evaluation import drawn_cases, observe_for
    from autograder.lesson.questions import load_chapter
    from autograder.registry import load_exercise

    for name in exercises:
        exercise = load_exercise(name)
        with contextlib.suppress(Exception):
            observe_for(exercise, exercise.reference, 0, ["cpu"])
        with contextlib.suppress(Exception):
            load_chapter(exercise.chapter[:4])
    drawn_cases.cache_clear()
    import autograder.grading.transport  # noqa: F401 - a check loads it
    from autograder import check  # noqa: F401 - looks once whether torch is the right one


def _modules_of(trial: int) -> list[str]:
    """Run the reference solution once in a fork, and return the modules that it loads on its way.

    Much is imported only when something is first used. What no fork may inherit is left out: a backend of matplotlib
    that is loaded too early shows no figures.
    """
    from autograder.grading.kernel import LineKernel, serve_cells

    readable, writable = os.pipe()
    before = set(sys.modules)
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(TRIAL_SECONDS)
            os.close(readable)
            os.chdir(tempfile.mkdtemp(prefix="trial-"))
            with os.fdopen(trial, encoding="utf-8") as file:
                cells = json.load(file)
            waiting = [{"id": "trial", "source": source} for source in reversed(cells)]
            serve_cells(LineKernel.instance(), lambda: waiting.pop() if waiting else None, lambda message: None)
            names = [name for name in sys.modules if name not in before and not name.startswith(_NEVER_EARLY)]
            with os.fdopen(writable, "w") as out:
                json.dump(names, out)
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as said:
        text = said.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else []


def _null(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _submission(cells: int, told: int, limits: Limits, level: str, folder: str, request: dict[str, Any]) -> NoReturn:
    """Lock this process in, then run the cells that the host sends. Never returns, and never cleans up: it ends."""
    word = told
    try:
        # Two numbers that neither has now, then the two places where both stay; everything else is closed.
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in (cells, told)]
        channel, word = (os.dup2(one, place, inheritable=False) for one, place in zip(high, (3, 4), strict=True))
        os.closerange(5, 65536)
        _lock_in(limits, level, folder, request["readable"], request["listable"])
    except BaseException as error:
        os.write(word, f"{type(error).__name__}: {error}".encode()[:900])
        os._exit(1)
    os.close(word)
    try:
        _run(channel, folder)
    finally:
        os._exit(0)


def _lock_in(limits: Limits, level: str, folder: str, readable: Sequence[str], listable: Sequence[str]) -> None:
    confine.die_with_parent()
    if level != NAMESPACES:
        os.setpgid(0, 0)
        limits = Limits(**{**limits.as_dict(), "processes": limits.processes + _tasks_of_this_user()})
    else:
        confine.mount_private_folders(limits)
        os.mkdir(folder, 0o700)
    os.chdir(folder)
    own = f"/proc/{os.readlink('/proc/self')}" if os.path.exists("/proc/self") else "/proc/self"
    devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"]
    writable = ["/tmp", "/dev/shm"] if level == NAMESPACES else [folder]
    if level != LANDLOCK:
        devices += ["/dev/ptmx", "/dev/pts"]  # bubblewrap's own, and not the terminals of the person who grades.
    confine.limit_resources(limits)
    system = ["/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory", own]
    confine.restrict_files([*readable, *system, "/sys/devices/system/cpu"], [*writable, *devices], listable)
    confine.drop_capabilities()
    if level == NAMESPACES:
        confine.hide_memory(False)  # Nobody else is here to read it, and programs look at their own /proc/self.
    confine.refuse_calls(alone=level != NAMESPACES)


def _tasks_of_this_user() -> int:
    """Count the threads of this user: outside a user namespace the limit on processes counts them all."""
    count, user = 0, os.getuid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _run(channel: int, folder: str) -> None:
    from autograder.grading.kernel import LineKernel, serve_cells, writer

    kernel, write = LineKernel.instance(), writer(channel)
    os.environ.update(HOME=folder, TMPDIR=folder if folder != WORK_FOLDER else "/tmp", IPYTHONDIR=f"{folder}/.ipython")
    tempfile.tempdir = None
    _show_figures()
    read = _reader(channel)
    first = read()
    for path, text in first["files"]:
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "wb") as file:
            file.write(base64.b64decode(text))
    _reseed()
    # As in a kernel: a module of the student's own lies beside the notebook, and was not there when the parent looked.
    if "" not in sys.path:
        sys.path.insert(0, "")
    importlib.invalidate_caches()

    def next_cell() -> dict[str, Any] | None:
        request = read()
        if request is not None:
            # The seed is there while a check runs, and at no other time.
            for name in request["forget"]:
                os.environ.pop(name, None)
            os.environ.update(request["environment"])
            if request["environment"]:
                _seal_check(kernel.shell.user_ns, write, request["id"])
        return request

    serve_cells(kernel, next_cell, write)


def _seal_check(names: dict[str, Any], write: Callable[[dict[str, Any]], None], cell: str) -> None:
    """Put back what a check relies on, whatever earlier cells did to it, and hand its observations over directly."""
    if _seal is not None:
        _seal.restore()
    checking = sys.modules.get("autograder.checking")
    if checking is None:
        return

    def hand_over(emission: dict[str, Any]) -> None:
        content = {"data": {EMISSION_TYPE: emission}, "metadata": {}, "transient": {}}
        write({"type": "display_data", "parent": cell, "content": content, "metadata": {}})

    checking.hand_over = hand_over  # type: ignore[attr-defined]
    names["check"] = checking.check


def _reader(channel: int) -> Callable[[], dict[str, Any] | None]:
    waiting = bytearray()

    def read() -> dict[str, Any] | None:
        while b"\n" not in waiting:
            data = os.read(channel, 1 << 20)
            if not data:
                return None
            waiting.extend(data)
        line, _, rest = bytes(waiting).partition(b"\n")
        waiting[:] = rest
        return json.loads(line)

    return read


def _show_figures() -> None:
    """Have figures shown in the notebook without a line that asks for it, as in every kernel."""
    os.environ["MPLBACKEND"] = _FIGURES
    if matplotlib := sys.modules.get("matplotlib"):
        matplotlib.rcParams["backend"] = _FIGURES


def _reseed() -> None:
    """Give the fork random numbers of its own, as a fresh process has them."""
    random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


if __name__ == "__main__":
    main()
