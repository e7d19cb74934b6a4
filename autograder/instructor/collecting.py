"""nbgrader's ``collect``, such that a submission in the exchange is its student's own: the files, and the name on it.

nbgrader copies what a link points at, with the instructor's rights, and takes a folder under another student's name
after a warning. The exchange's inbound folder belongs to everybody, so both are left out here:

    c.ExchangeFactory.collect = "autograder.instructor.collecting.CollectOwnFiles"
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect

from autograder.grading.submitted_files import shown

_SIZE_UNIT = 1000  # bytes: nbgrader's max_dir_size counts kilobytes
_PIECE = 1 << 20
_MOST_FILES = 10_000
_DEEPEST = 60


class TooLarge(ValueError):
    """A submission is larger than ``c.CourseDirectory.max_dir_size`` allows, or holds too many files."""


class CollectOwnFiles(ExchangeCollect):
    """Collect ordinary files, and only from folders that belong to the student whose name they bear.

    Each thing that is left out is named in a warning; what was collected before stays. ``check_owner = False`` is for
    a machine on which all students share one account: names are believed there.
    """

    def init_src(self) -> None:
        """Find the newest submission of each student, as nbgrader does, among those that are the student's."""
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def copy_files(self) -> None:
        """Copy the submissions to where nobody else can change them, and collect them from there."""
        records, self.src_records = self.src_records, []
        with tempfile.TemporaryDirectory(prefix=".collecting-", dir=self.coursedir.root) as place:
            for record in records:
                source = Path(self.inbound_path, record["filename"])
                try:
                    left = copy_plain_files(source, Path(place, source.name), self.coursedir.max_dir_size * _SIZE_UNIT)
                except (OSError, TooLarge) as error:
                    self.log.error("%s is not collected: %s", shown(source.name), error)
                    continue
                for name, reason in left:
                    self.log.warning("%s: %s is left out: %s.", record["username"], shown(name), reason)
                self.src_records.append(record)
            self.inbound_path, self.check_owner = place, False
            super().copy_files()

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """Read who handed in, and when. A folder that cannot count has no name, and is older than any other."""
        try:
            record = super()._path_to_record(path)
            problem = self._why_not(path, record["username"])
        except (ValueError, OverflowError, TypeError):
            record, problem = {}, "its name holds no time that can be read"
        except OSError as error:
            record, problem = {}, f"it cannot be looked at ({error.strerror})"
        if problem is None:
            return record
        self.log.warning("%s is left out: %s.", shown(os.path.basename(path)), problem)
        # One each: nbgrader takes the newest of those with the same name.
        return {"username": "", "filename": os.path.basename(path), "timestamp": datetime.min}

    def _why_not(self, path: str, student: str) -> str | None:
        if not student.isprintable():
            return "no student has such a name"
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            return "it is not a folder"
        if not self.check_owner or found.st_uid in (os.geteuid(), 0):
            return None
        owner = _account(found.st_uid)
        if owner == student:
            return None
        return (
            f"it bears the name of {student} but belongs to {owner}; cheating attempt? "
            "Where students share one account, say --ExchangeCollect.check_owner=False"
        )


def copy_plain_files(source: Path, target: Path, most: int) -> list[tuple[str, str]]:
    """Copy the ordinary files of a folder that somebody else may change meanwhile, at most ``most`` bytes.

    Links are not followed, also not those that take a file's place while it is copied. Return (name, why) for each
    that is left out. Raises TooLarge beyond ``most`` and beyond 10,000 files, and OSError where the folder or the
    target cannot be used.
    """
    left: list[tuple[str, str]] = []
    room, count = most, 0
    target.mkdir()
    for folder, folders, names, here in os.fwalk(source, follow_symlinks=False, onerror=_raise):
        below = Path(os.path.relpath(folder, source))
        count += len(folders) + len(names)
        if count > _MOST_FILES:
            raise TooLarge(f"it holds more than {_MOST_FILES} files")
        for name in list(folders):
            if why := _not_entered(name, here, len(below.parts)):
                folders.remove(name)
                left.append((str(below / name), why))
            else:
                (target / below / name).mkdir()
        for name in names:
            try:
                room = _copy(name, here, target / below / name, room)
            except _LeftOut as why:
                left.append((str(below / name), str(why)))
            if room < 0:
                raise TooLarge(f"it has more than {most // 1_000_000} MB")
    return left


class _LeftOut(Exception):
    """A file that is not copied; says why."""


def _not_entered(name: str, here: int, depth: int) -> str | None:
    if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
        return "it is a link"
    return f"it lies more than {_DEEPEST} folders deep" if depth >= _DEEPEST else None


def _copy(name: str, here: int, copy: Path, room: int) -> int:
    """Copy a file until its end or until there is no room; return the room that is left, negative for too little."""
    try:
        # Opening a pipe would wait for a writer, opening a link would follow it.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    except OSError as error:
        why = {errno.ELOOP: "it is a link", errno.ENXIO: "it is no ordinary file"}
        raise _LeftOut(why.get(error.errno, f"it cannot be read ({error.strerror})")) from None
    with open(file, "rb") as data:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _LeftOut("it is no ordinary file")
        if found.st_nlink > 1:
            raise _LeftOut("it has another name elsewhere")
        with copy.open("wb") as out:
            while room >= 0 and (piece := data.read(_PIECE)):
                room -= len(piece)
                if room >= 0:
                    out.write(piece)
    return room


def _raise(error: OSError) -> None:
    raise error


def _account(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the account {user}"
