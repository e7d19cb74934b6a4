"""People with accounts and homes of their own on this machine, for the tests of nbgrader's exchange.

As root with bubblewrap, each program really runs as another user: the accounts exist in a copy of /etc/passwd that only
it sees, and the files that it leaves are owned by three different users. Elsewhere the three people share one account
and have separate homes, and nbgrader is told who they are.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

FIRST_USER = 61001


@dataclass
class Account:
    """One person; ``user`` is None where all share the account of the tests."""

    name: str
    home: Path
    user: int | None
    passwd: Path

    def run(self, *command: str, folder: Path | None = None, seconds: float = 280) -> subprocess.CompletedProcess:
        """Run ``python -m …`` as this person, in the home or a folder below it."""
        own = {
            "HOME": str(self.home),
            "USER": self.name,
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        place = folder or self.home
        return subprocess.run(
            [*self.before(place), sys.executable, "-m", *command],
            cwd=None if self.user is not None else place,
            env=own,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def before(self, folder: Path) -> list[str]:
        """Return what comes before a command so that this person runs it in a folder; nothing where all share one."""
        return [] if self.user is None else _as_user(self.user, self.passwd, folder)

    def submit(self, assignment: str) -> subprocess.CompletedProcess:
        """Run ``nbgrader submit``, saying who it is where the account does not."""
        named = ["--student", self.name] if self.user is None else []
        return self.run("nbgrader", "submit", assignment, *named)

    def own(self, path: Path) -> None:
        """Make this person the owner of what the tests wrote."""
        if self.user is not None:
            for each in (path, *path.rglob("*")):
                os.chown(each, self.user, self.user)


def make_accounts(place: Path, names: list[str]) -> list[Account]:
    """Make a home for each person, closed to the others."""
    place.chmod(0o755)
    separate = why_shared() is None
    users = {name: FIRST_USER + number if separate else None for number, name in enumerate(names)}
    passwd = place / "passwd"
    lines = [f"{name}:x:{user}:{user}::{place / name}:/bin/sh\n" for name, user in users.items()]
    passwd.write_text("root:x:0:0:root:/root:/bin/sh\n" + "".join(lines))
    accounts = [Account(name, place / name, user, passwd) for name, user in users.items()]
    for account in accounts:
        account.home.mkdir(mode=0o700)
        account.own(account.home)
    return accounts


@functools.cache
def why_shared() -> str | None:
    """Return why there cannot be separate accounts here, None where there can."""
    if os.geteuid() != 0:
        return "only root can run programs as three different users"
    if not (shutil.which("bwrap") and shutil.which("setpriv")):
        return "bubblewrap or setpriv is not installed"
    command = [*_as_user(FIRST_USER, Path("/etc/passwd"), Path("/")), sys.executable, "-c", "import nbgrader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return None if done.returncode == 0 else f"bubblewrap does not work here: {done.stderr.strip()[:200]}"


def _as_user(user: int, passwd: Path, folder: Path) -> list[str]:
    """Return the start of a command that runs as a user, with every file at its place and its own permissions."""
    command = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    command += ["--ro-bind", str(passwd), "/etc/passwd"]
    needed = {os.path.realpath(sys.base_prefix), os.path.abspath(sys.base_prefix), sys.prefix, str(ROOT)}
    closed = {str(outer) for path in needed for outer in Path(path).parents if not outer.stat().st_mode & 0o001}
    outermost = sorted(path for path in closed if not any(path.startswith(f"{other}/") for other in closed))
    made: set[str] = set()
    for path in outermost:
        # The interpreter may live in root's home, which nobody else may enter: its folders alone are shown there.
        command += ["--perms", "0755", "--tmpfs", path]
    for path in sorted(needed):
        outer = next((each for each in outermost if path.startswith(f"{each}/")), None)
        if outer is None:
            continue
        for parent in reversed(Path(path).parents):
            if str(parent).startswith(f"{outer}/") and str(parent) not in made:
                made.add(str(parent))
                command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--ro-bind", path, path]
    ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [*command, "--chdir", str(folder), "setpriv", *ids]
