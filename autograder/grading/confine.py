"""What a forked process does to itself before it runs a student's first byte: it gives up whatever it does not need.

In this order: namespaces and private file systems (where the kernel lets an ordinary user have them), resource limits,
Landlock, capabilities, seccomp. Each step takes something away for good; none can be undone from inside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from autograder.grading.limits import Limits

PRIVATE_FOLDERS = ("/tmp", "/dev/shm")
WORK_FOLDER = "/tmp/submission"
NAMESPACES, BUBBLEWRAP, LANDLOCK, NONE = "namespaces", "bubblewrap", "landlock", "none"

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_CLONE_NEWCGROUP = 0x02000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)

# Calls that no exercise needs and that reach beyond the process. They fail with EPERM, so that code that only tries
# one goes on.
_REFUSED_CALLS = (
    "mount umount2 pivot_root chroot setns unshare move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr "
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp bpf perf_event_open userfaultfd "
    "add_key request_key keyctl io_uring_setup io_uring_enter io_uring_register open_by_handle_at name_to_handle_at "
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct syslog quotactl "
    "settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm vhangup nfsservctl "
    "lookup_dcookie fanotify_init personality migrate_pages move_pages mbind set_mempolicy vmsplice"
).split()
_ENOSYS_CALLS = ("clone3",)
_OTHER_PROCESS_CALLS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
_SIGNAL_CALLS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_LANDLOCK_KEEPS_SIGNALS_IN = 6
_NAMESPACE_FLAGS = (
    _CLONE_NEWNS,
    _CLONE_NEWUTS,
    _CLONE_NEWIPC,
    _CLONE_NEWUSER,
    _CLONE_NEWPID,
    _CLONE_NEWNET,
    _CLONE_NEWCGROUP,
)
_AF_UNIX, _TIOCSTI = 1, 0x5412


class ConfinementError(OSError):
    """A step that this level of confinement promises did not work; nothing of the student's may run."""


def _call(name: str, *arguments: object) -> int:
    result = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise ConfinementError(number, f"{name}: {os.strerror(number)}")
    return result


def _control(option: int, value: int) -> int:
    return _call("prctl", option, ctypes.c_ulong(value), 0, 0, 0)


def die_with_parent() -> None:
    """End this process when the one that forked it ends."""
    _control(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended, so that none outlives the run."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory(hidden: bool = True) -> None:
    """Keep processes of the same user from reading or tracing this one."""
    _control(_PR_SET_DUMPABLE, 0 if hidden else 1)


def leave_namespaces() -> None:
    """Move into new user, mount, network, IPC and host name namespaces; the next child is the first of a new PID one.

    Raises ConfinementError where the kernel refuses.
    """
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    hide_memory(False)  # The files below belong to root while memory is hidden.
    _call("unshare", flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        try:
            Path(f"/proc/self/{name}").write_text(text)
        except OSError as error:
            raise ConfinementError(error.errno, f"writing /proc/self/{name}: {error.strerror}") from None
    hide_memory()
    _call("mount", None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)


def mount_private_folders(limits: Limits) -> None:
    """Put empty memory file systems over the folders that may be written to; they vanish with the namespace."""
    options = f"size={limits.disk},nr_inodes=20000,mode=0700".encode()
    for folder in PRIVATE_FOLDERS:
        if os.path.isdir(folder):
            _call("mount", b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(_MS_NOSUID | _MS_NODEV), options)


def limit_resources(limits: Limits) -> None:
    """Bound memory, processor time, processes, files and their size; the bounds cannot be raised again."""
    seconds = int(limits.notebook_seconds) + 10
    for kind, value in (
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 8 * 2**20),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def landlock_version() -> int:
    """Return the version of Landlock that this kernel offers, 0 for none."""
    try:
        from py_landlock import get_abi_version

        return int(get_abi_version())
    except (ImportError, OSError, RuntimeError):
        return 0
    except Exception:  # py-landlock's own errors, whatever their base: without an answer there is no Landlock.
        return 0


def restrict_files(readable: Sequence[str], writable: Sequence[str], listable: Sequence[str] = ()) -> None:
    """Allow reading below ``readable``, listing below ``listable`` and everything below ``writable``; refuse all other
    files and all TCP.

    Raises ConfinementError where Landlock is missing.
    """
    if not landlock_version():
        raise ConfinementError(errno.ENOSYS, "this kernel has no Landlock")
    from py_landlock import AccessFs, Landlock

    read_file = AccessFs.READ_FILE | AccessFs.EXECUTE
    write_file = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.TRUNCATE | AccessFs.IOCTL_DEV
    write_folder = ~(AccessFs.MAKE_CHAR | AccessFs.MAKE_BLOCK)
    rules = Landlock(strict=False)
    for path in readable:
        if os.path.exists(path):
            rules.add_path_rule(path, access=read_file | AccessFs.READ_DIR if os.path.isdir(path) else read_file)
    for path in filter(os.path.exists, listable):
        rules.add_path_rule(path, access=AccessFs.READ_DIR)
    for path in writable:
        if os.path.exists(path):
            rules.add_path_rule(path, access=write_folder if os.path.isdir(path) else write_file)
    rules.apply()


def drop_capabilities() -> None:
    """Give up every capability, also those that a program started later could have brought back."""

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Data(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]

    _control(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    _call("capset", ctypes.byref(Header(_CAPABILITY_VERSION_3, 0)), ctypes.byref((Data * 2)()))


def seccomp_is_there() -> bool:
    """Whether libseccomp and its binding are installed."""
    try:
        import pyseccomp  # noqa: F401
    except (ImportError, RuntimeError, OSError):
        return False
    return True


def refuse_calls(alone: bool, loopback: bool = False) -> None:
    """Load a seccomp filter that refuses what reaches beyond the process. ``alone``: no PID namespace hides others;
    ``loopback``: the namespace has no network but its own, which a Jupyter kernel needs.

    Raises ConfinementError where libseccomp is missing or the kernel refuses.
    """
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError) as error:
        raise ConfinementError(errno.ENOSYS, f"seccomp: {error}") from None
    refuse, absent = seccomp.ERRNO(errno.EPERM), seccomp.ERRNO(errno.ENOSYS)
    calls = seccomp.SyscallFilter(seccomp.ALLOW)

    def add(action: int, name: str, *conditions: object) -> None:
        try:
            calls.add_rule(action, name, *conditions)
        except (OSError, ValueError):  # A call that this architecture, or this libseccomp, does not know.
            return

    for name in _REFUSED_CALLS:
        add(refuse, name)
    for name in _ENOSYS_CALLS:
        add(absent, name)
    for flag in _NAMESPACE_FLAGS:
        add(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    if not loopback:
        add(refuse, "socket", seccomp.Arg(0, seccomp.NE, _AF_UNIX))
    add(refuse, "ioctl", seccomp.Arg(1, seccomp.EQ, _TIOCSTI))
    add(refuse, "prctl", seccomp.Arg(0, seccomp.EQ, _PR_SET_PDEATHSIG))
    if alone:
        own, names = os.getpid(), _OTHER_PROCESS_CALLS
        if landlock_version() < _LANDLOCK_KEEPS_SIGNALS_IN:
            # Not even to its own children: a filter cannot tell them from others.
            names = (*names, *_SIGNAL_CALLS)
            for name in ("tkill", "pidfd_send_signal"):
                add(refuse, name)
        for name in names:
            # 0 means this process, and its group for kill: it leads its own.
            for relation, value in ((seccomp.GT, own), (seccomp.LT, own)):
                below = (seccomp.Arg(0, seccomp.GT, 0),) if relation == seccomp.LT else ()
                add(refuse, name, seccomp.Arg(0, relation, value), *below)
    try:
        calls.load()
    except OSError as error:
        raise ConfinementError(error.errno, f"seccomp: {error.strerror}") from None
