"""Results by the key of everything that they depend on, one file each; a run that was cut short finds them again."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

import autograder
from autograder.grading.limits import Limits
from autograder.grading.ticket import Ticket

_DECIDING = ("torch", "numpy", "ipykernel", "ipython", "nbclient", "nbgrader", "safetensors")


@functools.cache
def environment_digest() -> str:
    """Return a digest of the versions that decide an output, and of the autograder's own source."""
    digest = hashlib.sha256(f"{platform.python_version()} {platform.machine()}".encode())
    for name in _DECIDING:
        with contextlib.suppress(PackageNotFoundError):
            digest.update(f"{name}=={version(name)}".encode())
    folder = Path(autograder.__file__).parent
    for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.toml")]):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def key_of(
    notebook: NotebookNode, files: Iterable[tuple[str, bytes]], ticket: Ticket, limits: Limits, confined: bool
) -> str:
    """Return the key of a sanitized notebook's result: its cells and files, the seed, the limits, the environment."""
    cells = [(cell.cell_type, cell.source, cell.metadata.get("nbgrader")) for cell in notebook.cells]
    parts = [cells, asdict(limits), ticket.seed, ticket.devices, environment_digest(), confined]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for path, data in sorted(files):
        digest.update(os.fsencode(f"\0{path}\0{len(data)}\0") + data)
    return digest.hexdigest()


class Store:
    """Files below one folder, readable by their owner only: they hold students' work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json.gz"

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what is stored under a key, or None; a file that cannot be read counts as none."""
        try:
            with gzip.open(self._file(key), "rt", encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError, EOFError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Store a value; readers see all of it or nothing. Raises OSError where it cannot be written."""
        file = self._file(key)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as out:
                out.write(json.dumps(value).encode())
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


class Journal:
    """One line of JSON for each submission that has reached the gradebook, in the order in which they did."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> dict[str, dict[str, Any]]:
        """Return student -> newest entry. A last line that was cut short is passed over."""
        found: dict[str, dict[str, Any]] = {}
        try:
            lines = self.file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return found
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                found[entry["student"]] = entry
        return found

    def add(self, entry: dict[str, Any]) -> None:
        """Append one entry. Raises OSError where it cannot be written."""
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry) + "\n")
