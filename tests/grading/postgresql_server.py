"""A PostgreSQL server for a test: on a socket in a folder of its own, run by a user without rights, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOBODY = 65534


def programs() -> Path | None:
    """Return the folder of initdb and postgres, or None where there is no server to be had."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    return versions[-1].parent if versions else None


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Yield the address of an empty database. PostgreSQL refuses to run as root, so that root starts it as nobody."""
    user: dict[str, Any] = {}
    place = Path(tempfile.mkdtemp(prefix="pg", dir=folder))
    if os.geteuid() == 0:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        os.chown(place, NOBODY, NOBODY)
    data, binaries = place / "data", programs()
    assert binaries is not None
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "grader", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
        check=True,
        capture_output=True,
        cwd=place,
        **user,
    )
    settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=10", "-c", "shared_buffers=8MB"]
    with (place / "log").open("w") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-k", place, *settings], stdout=log, stderr=log, cwd=place, **user
        )
    try:
        until = time.monotonic() + 60
        while not (place / ".s.PGSQL.5432").exists():
            assert server.poll() is None and time.monotonic() < until, (place / "log").read_text()
            time.sleep(0.05)
        yield f"postgresql+psycopg://grader@/postgres?host={place}"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(place, ignore_errors=True)
