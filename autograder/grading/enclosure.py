"""Which files a worker sees, and the command that starts it: bubblewrap around it, or nothing but its own user.

It sees Python, the installed packages and the course's two packages, all read-only. It does not see the course's
folder: no gradebook, no submissions, no solutions.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import autograder
from autograder.grading.confine import LANDLOCK, NAMESPACES, PRIVATE_FOLDERS
from autograder.grading.limits import Limits

UNPRIVILEGED = 65534
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime", "timezone", "mime.types")
_OTHER = ("/sys/devices/system/cpu", "/opt/conda")
_PACKAGES = ("autograder", "simulations")
# References and wrong answers. The warm parent has loaded what it needs of them before it forks.
_HIDDEN = os.path.join("autograder", "exercises")

# Run by the interpreter inside: leave root before anything else, then start the worker.
_START = """
import os, sys
user = int(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.execv(sys.executable, [sys.executable, "-s", "-P", "-m", sys.argv[2]])
"""


class EnclosureError(OSError):
    """This kind of enclosure cannot be had here; the sentence says why."""


@functools.cache
def course_folder() -> str:
    """Return the folder that holds the package autograder."""
    return str(Path(autograder.__file__).resolve().parent.parent)


@functools.cache
def _python_folders() -> tuple[str, ...]:
    """Return the folders of the interpreter and of installed packages, outermost only."""
    executable = os.path.realpath(sys.executable)
    found = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(executable))]
    for entry in sys.path:
        names = os.listdir(entry) if entry and os.path.isdir(entry) else ()
        # A course's own folder may hold such metadata too, left by an installation; it is never shown to submissions.
        if any(name.endswith(".dist-info") for name in names) and "nbgrader_config.py" not in names:
            found.append(entry)
    folders = sorted({os.path.abspath(folder) for folder in found} | {os.path.realpath(folder) for folder in found})
    return tuple(_outermost(folder for folder in folders if folder not in ("/", "/usr")))


def _outermost(folders: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for folder in sorted(folders):
        if not any(folder == outer or folder.startswith(outer + os.sep) for outer in (*kept, "/usr")):
            kept.append(folder)
    return kept


@functools.cache
def _course_packages() -> tuple[str, ...]:
    found = [os.path.join(course_folder(), name) for name in _PACKAGES]
    return tuple(path for path in found if os.path.isdir(path) and not _covered(path))


def _covered(path: str) -> bool:
    return any(path.startswith(folder + os.sep) for folder in _python_folders())


@functools.cache
def bound() -> list[str]:
    """Return every path that a worker sees."""
    etc = [f"/etc/{name}" for name in _ETC]
    paths = [*_SYSTEM, *etc, *_OTHER, *_python_folders(), *_course_packages()]
    return [path for path in paths if os.path.exists(path)]


@functools.cache
def readable() -> list[str]:
    """Return every path that a submission's process may read below: what a worker sees, without the exercises."""
    return _opened()[0]


@functools.cache
def listable() -> list[str]:
    """Return the folders above the exercises. Their names may be listed, which is how Python finds other modules."""
    return _opened()[1]


def exposed(folder: str | os.PathLike[str]) -> str | None:
    """Return the readable path below which a folder lies, if it does: a course must not be among installed files."""
    real = os.path.realpath(folder) + os.sep
    return next((path for path in readable() if real.startswith(os.path.realpath(path) + os.sep)), None)


def _opened() -> tuple[list[str], list[str]]:
    hidden = os.path.realpath(os.path.join(course_folder(), _HIDDEN))
    kept: list[str] = []
    opened: list[str] = []
    waiting = bound()[::-1]
    while waiting:
        path = waiting.pop()
        real = os.path.realpath(path)
        if real == hidden:
            continue
        if hidden.startswith(real + os.sep):
            opened.append(path)
            waiting.extend(os.path.join(path, name) for name in sorted(os.listdir(path), reverse=True))
        else:
            kept.append(path)
    return kept, opened


def environment() -> dict[str, str]:
    """Return the whole environment of a worker: nothing of the host's own is passed on."""
    python_path = [course_folder(), *(entry for entry in _python_folders() if not _is_prefix(entry))]
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(python_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": "/tmp/.matplotlib",
        "NBGRADER_EXECUTION": "autograde",
        **dict.fromkeys(threads, "1"),
    }


def _is_prefix(folder: str) -> bool:
    return any(
        prefix == folder or prefix.startswith(folder + os.sep)
        for prefix in (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))))
    )


def command(
    level: str, limits: Limits, module: str = "autograder.grading.worker", cuda: bool = False
) -> tuple[list[str], dict[str, str]]:
    """Return the command and environment of a worker. Raises EnclosureError where the level cannot be had.

    ``cuda`` lets the worker see NVIDIA's devices.
    """
    inner = [sys.executable, "-I", "-S", "-c", _START, str(UNPRIVILEGED), module]
    if level == LANDLOCK:
        if os.geteuid() == 0 and not _others_may_enter(os.path.realpath(sys.executable)):
            raise EnclosureError("started as root, with an interpreter in a folder that no other user may enter.")
        return inner, environment()
    if level == NAMESPACES and (hidden := next(filter(_is_hidden, readable()), None)):
        raise EnclosureError(f"{hidden} lies in a folder of which each submission gets an empty one of its own.")
    program = shutil.which("bwrap")
    if program is None:
        raise EnclosureError("the program bwrap is missing (on Debian: apt-get install bubblewrap).")
    devices = [str(path) for path in Path("/dev").glob("nvidia*")] if cuda else []
    return [
        program,
        *_arguments(limits),
        *(f for path in devices for f in ("--dev-bind", path, path)),
        *inner,
    ], environment()


@functools.cache
def fresh_proc() -> bool:
    """Whether bubblewrap may mount a /proc of its own here."""
    program = shutil.which("bwrap") or "bwrap"
    user = [] if os.geteuid() == 0 else ["--unshare-user"]
    trial = [program, *user, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        return subprocess.run(trial, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _is_hidden(path: str) -> bool:
    """Whether a submission's private folders would cover a path: what it loads later would be missing then."""
    return any(path.startswith(folder + os.sep) for folder in PRIVATE_FOLDERS)


def _others_may_enter(path: str) -> bool:
    return all(os.stat(folder).st_mode & 0o001 for folder in Path(path).parents)


def _arguments(limits: Limits) -> list[str]:
    made = _Folders()
    made.add("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    made.add("--die-with-parent", "--new-session", "--hostname", "grading")
    if os.geteuid() != 0:
        # Root needs no user namespace, and must not have one: inside it would still count as root for its limits.
        made.add("--unshare-user")
    for path in _SYSTEM:
        if os.path.islink(path):
            made.add("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            made.add("--ro-bind", path, path)
    # Inside another container a fresh /proc may be refused. Landlock keeps a submission out of either.
    made.add(*(("--proc", "/proc") if fresh_proc() else ("--bind", "/proc", "/proc")), "--dev", "/dev")
    for folder, size in (("/tmp", limits.disk), ("/dev/shm", limits.disk)):
        made.add("--perms", "1777", "--size", str(size), "--tmpfs", folder)
    for path in bound():
        if path not in _SYSTEM:
            made.bind(path)
    made.add("--chdir", "/")
    return made.arguments


class _Folders:
    """bubblewrap's arguments, with each parent folder made first: those it makes itself, only root could enter."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.made = {"/", "/tmp", "/dev", "/usr"}

    def add(self, *arguments: str) -> None:
        self.arguments.extend(arguments)

    def bind(self, path: str) -> None:
        for parent in reversed(Path(path).parents):
            if str(parent) not in self.made:
                self.made.add(str(parent))
                self.add("--perms", "0755", "--dir", str(parent))
        self.made.add(path)
        self.add("--ro-bind", path, path)
