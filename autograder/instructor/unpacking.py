"""Unpacking what a platform has packed, and what students have packed inside it: notebooks only, and never too much.

nbgrader's own extractor writes whatever an archive holds, and stops the whole collection at the first file that ends in
``.gz`` or ``.zip`` and is no archive. Here such a file costs its owner one line of warning.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from nbgrader.plugins import ExtractorPlugin
from traitlets import Integer

from autograder.grading.limits import LARGEST_NOTEBOOK

DEEPEST = 3
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True)
class _Member:
    """One file of an archive: its name there, the bytes it says it has, and how to read it."""

    name: str
    size: int
    open: Callable[[], IO[bytes] | None]


class NotebookExtractor(ExtractorPlugin):
    """nbgrader's extractor, taking from archives what can be collected and archives within them."""

    megabytes = Integer(4000, help="What all archives together may unpack to.").tag(config=True)
    archive_megabytes = Integer(500, help="What an archive inside an archive may have.").tag(config=True)

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Copy and unpack ``archive_path`` into ``extracted_path``, an archive into a folder called like it.

        What cannot be read or is too large is passed over with a warning. Ends the program when more is unpacked than
        ``megabytes``; nothing is collected then.
        """
        self._left = self.megabytes << 20
        source, target = Path(archive_path), Path(extracted_path)
        self._target = target
        files = sorted(path for path in source.rglob("*") if path.is_file())
        if not files:
            self.log.warning("No files found in directory: %s", source)
        for file in files:
            place = target / file.relative_to(source)
            if file.suffix.lower() in self.zip_ext:
                self._unpack(file, place, file.relative_to(source).as_posix(), 1)
            elif self._is_wanted(file.name):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)

    def _is_wanted(self, name: str) -> bool:
        return Path(name).suffix in self.parent.collector_plugin_inst.valid_ext

    def _unpack(self, archive: Path, place: Path, shown: str, depth: int) -> None:
        """Unpack one archive; ``place`` is where its file would lie, ``shown`` what to call it in a warning."""
        folder = _without_ending(place)
        try:
            with _members(archive) as members:
                for member in members:
                    self._take(member, folder, shown, depth)
        except _NoArchive:
            # data.csv.gz, say: a file like any other, and none that is collected.
            self.log.debug("No archive: %s", shown)
        except (*_DAMAGED, OSError) as error:
            self.log.warning("Passed over, it cannot be unpacked (%s): %s", str(error) or type(error).__name__, shown)

    def _take(self, member: _Member, folder: Path, shown: str, depth: int) -> None:
        name = PurePosixPath(member.name.replace("\\", "/"))
        shown = f"{shown}/{name}"
        nested = name.suffix.lower() in self.zip_ext
        if not (nested or self._is_wanted(name.name)):
            return
        if name.is_absolute() or ".." in name.parts:
            self.log.warning("Passed over, its name leads out of the archive: %s", shown)
            return
        most = self.archive_megabytes << 20 if nested else LARGEST_NOTEBOOK
        if member.size > most:
            self.log.warning("Passed over, it has more than %d MB: %s", most >> 20, shown)
            return
        if nested and depth == DEEPEST:
            self.log.warning("Passed over, an archive in an archive in an archive: %s", shown)
            return
        self._left -= member.size
        if self._left < 0:
            shutil.rmtree(self._target)
            self.parent.fail("Nothing was collected: the archives unpack to more than %d MB.", self.megabytes)
        place = folder / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as source, place.open("wb") as target:  # type: ignore[union-attr]
                shutil.copyfileobj(source, target)
        except (*_DAMAGED, OSError) as error:
            place.unlink(missing_ok=True)
            self.log.warning("Passed over, it cannot be unpacked (%s): %s", str(error) or type(error).__name__, shown)
            return
        if nested:
            self._unpack(place, place, shown, depth + 1)
            place.unlink()


class _NoArchive(ValueError):
    """The file is neither a zip nor a tar archive."""


class _members:
    """The files of an open archive; links and devices are none."""

    def __init__(self, archive: Path) -> None:
        if zipfile.is_zipfile(archive):
            self.archive: zipfile.ZipFile | tarfile.TarFile = zipfile.ZipFile(archive)
        elif tarfile.is_tarfile(archive):
            self.archive = tarfile.open(archive)
        elif archive.suffix.lower() == ".zip":
            raise zipfile.BadZipFile("it is no zip file, or a damaged one")
        else:
            raise _NoArchive(archive.name)

    def __enter__(self) -> Iterator[_Member]:
        if isinstance(self.archive, zipfile.ZipFile):
            return (
                _Member(each.filename, each.file_size, lambda each=each: self.archive.open(each))
                for each in self.archive.infolist()
                if not each.is_dir()
            )
        return (
            _Member(each.name, each.size, lambda each=each: self.archive.extractfile(each))
            for each in self.archive
            if each.isfile()
        )

    def __exit__(self, *_: object) -> None:
        self.archive.close()


def _without_ending(place: Path) -> Path:
    """Return a folder for an archive's files: its name without the ending, and another where that is taken."""
    name = place.name[: -len(place.suffix)].removesuffix(".tar")
    folder, number = place.with_name(name or place.name), 2
    while folder.exists():
        folder, number = place.with_name(f"{name}-{number}"), number + 1
    return folder
