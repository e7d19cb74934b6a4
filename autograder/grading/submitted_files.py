"""The files that a student handed in beside the notebooks: which of them travel, and which are left out."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from autograder.grading.limits import Limits


class Unreadable(ValueError):
    """A submission's folder cannot be graded; the sentence says why."""


def files_beside(folder: str | Path, ignore: Iterable[str], most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield (name below the folder, path) of every file that travels with a notebook, as nbgrader decides it.

    Symbolic links are left out: one could point at anything that the instructor may read. Raises Unreadable at the
    first file beyond ``most``.
    """
    for count, (name, path) in enumerate(_all_files(folder, ignore)):
        if most is not None and count >= most:
            raise Unreadable(f"it brings more than {most} files.")
        if not os.path.islink(path) and os.path.isfile(path):
            yield name, path


def read_files(
    folder: str | Path, ignore: Iterable[str], limits: Limits, without: Collection[str] = ()
) -> list[tuple[str, bytes]]:
    """Return (name, content) of the files beside a notebook, but for some. Raises Unreadable for too many, too much,
    and what cannot be read."""
    files, size = [], 0
    try:
        for name, path in files_beside(folder, ignore, limits.file_count):
            if name in without:
                continue
            size += os.path.getsize(path)
            if size > limits.files:
                raise Unreadable(f"the files beside its notebook have more than {limits.files >> 20} MB.")
            files.append((name, Path(path).read_bytes()))
    except OSError as error:
        raise Unreadable(f"{shown(os.path.basename(error.filename))} cannot be read: {error.strerror}.") from None
    return files


def links_beside(folder: str | Path, ignore: Iterable[str]) -> list[str]:
    """Return the names of what a student handed in as a symbolic link, or as a file with other names elsewhere."""
    return [
        name
        for name, path in _all_files(folder, ignore)
        if os.path.islink(path) or (os.path.isfile(path) and os.stat(path).st_nlink > 1)
    ]


def shown(name: str) -> str:
    """Return a file's name such that it fits into a line of text, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "replace").encode("unicode_escape").decode()


def _all_files(folder: str | Path, ignore: Iterable[str]) -> Iterator[tuple[str, str]]:
    patterns = [*ignore, "*.ipynb"]
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not _is_ignored(each, patterns))
        for name in sorted([*names, *(each for each in folders if os.path.islink(os.path.join(directory, each)))]):
            if not _is_ignored(name, patterns):
                path = os.path.join(directory, name)
                yield os.path.relpath(path, folder), path


def _is_ignored(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
