"""Whose file is it? nbgrader's zip_collect with the file names of Moodle, Canvas and Google Classroom.

    downloaded/ch03_buffers_and_state/archive/…      the downloaded zip files or folders, as they came
    nbgrader zip_collect ch03_buffers_and_state

Moodle writes ``Ada Lovelace_12345_assignsubmission_file_/NOTEBOOK.ipynb``, or the same in one name where the setting
"Download submissions in folders" is off; Canvas ``lovelaceada_LATE_4711_98765_NOTEBOOK-1.ipynb``, where 4711 is the
student; Google Drive ``Ada Lovelace - NOTEBOOK.ipynb`` for the copies that Classroom has made. A folder that is called
like a student's id is that student's. Students are known by the gradebook: the id, ``lms_user_id``, or the name.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.plugins import FileNameCollectorPlugin
from nbgrader.utils import find_all_notebooks
from traitlets import Bool

from autograder.instructor.roster import Student

_MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<participant>\d+)_assignsubmission_file(?:_(?P<file>.*))?", re.DOTALL)
_CANVAS = re.compile(r"(?P<name>.+?)(?P<late>_late)?_(?P<user>\d+)_(?P<attachment>\d+)_(?P<file>.+)", re.I | re.DOTALL)
_GOOGLE = " - "
# What platforms and JupyterLab add to a name that is taken: NAME-1, NAME (1), NAME-Copy1.
_AGAIN = r"(?:-\d+|_\d+| ?\(\d+\)|-Copy\d*)?"


@dataclass
class Sorted:
    """Files by path: whose they are and which notebook; what hinders collecting; who was marked late."""

    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


def sort_files(paths: Sequence[str], students: Iterable[Student], notebooks: Sequence[str]) -> Sorted:
    """Find the owner of each path, which is relative to the folder of what was unpacked.

    ``notebooks`` are the names that were released, with their ending. A file whose name fits nobody, or fits several,
    is unknown; a second file for the same notebook of the same student is a fault.
    """
    known = _Names(students)
    found = Sorted()
    first: dict[tuple[str, str], str] = {}
    for path in sorted(paths):
        owners, name, late = known.read(path)
        if len(owners) != 1:
            several = f" (it fits {', '.join(sorted(owners))})" if owners else ""
            found.unknown.append(f"{path}{several}")
            continue
        owner = next(iter(owners))
        notebook = _released_name(name, notebooks)
        if before := first.get((owner, notebook)):
            found.faults.append(f"{owner} has handed in {notebook} twice: {before} and {path}")
            continue
        first[owner, notebook] = path
        found.owners[path] = owner, notebook
        if late:
            found.late.append(owner)
    return found


class _Names:
    """The class by all that a path may say of it."""

    def __init__(self, students: Iterable[Student]) -> None:
        self.by_id: dict[str, str] = {}
        self.by_number: dict[str, str] = {}
        self.by_name: dict[str, set[str]] = {}
        for student in students:
            self.by_id[student.id] = student.id
            if student.lms_user_id:
                self.by_number[student.lms_user_id] = student.id
            first, last = student.first_name or "", student.last_name or ""
            for key in {_folded(f"{first} {last}"), _folded(f"{last} {first}")} - {""}:
                self.by_name.setdefault(key, set()).add(student.id)

    def read(self, path: str) -> tuple[set[str], str, bool]:
        """Return the ids that a path may mean, the name of the file as the student had it, and whether it was late."""
        *folders, name = PurePath(path).parts
        # From outside: the platform's part of a path is before the student's, who could call a folder or a file
        # like somebody else.
        for part in (*folders, name):
            for text in _readings(part):
                for owners, rest, late in self._readings_of(text):
                    if owners:
                        # The part is a folder, or the file's own name with something before it.
                        return owners, rest if part == name else name, late
            if _MOODLE.fullmatch(part):
                return set(), name, False
        return set(), name, False

    def _readings_of(self, text: str) -> Iterator[tuple[set[str], str, bool]]:
        if text in self.by_id:
            yield {text}, text, False
        if found := _MOODLE.fullmatch(text):
            yield self._named(found["name"]), found["file"] or text, False
        if found := _CANVAS.fullmatch(text):
            number = self.by_number.get(found["user"])
            yield {number} if number else self._named(found["name"]), found["file"], bool(found["late"])
        pieces = text.split(_GOOGLE)
        for cut in range(1, len(pieces)):
            yield self._named(_GOOGLE.join(pieces[:cut])), _GOOGLE.join(pieces[cut:]), False

    def _named(self, text: str) -> set[str]:
        return self.by_name.get(_folded(text), set())


def _folded(text: str) -> str:
    """Return a name without case, accents, spaces and punctuation: no two platforms keep the same of them."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text).casefold() if letter.isalnum())


def _readings(text: str) -> Iterator[str]:
    """Yield a name, and what it was before a zip file lost the mark of its encoding."""
    yield text
    try:
        repaired = text.encode("cp437").decode("utf-8")
    except UnicodeError:
        return
    if repaired != text:
        yield repaired


def _released_name(name: str, notebooks: Sequence[str]) -> str:
    """Return the released notebook that a file is a copy of by its name, else the name itself."""
    for notebook in notebooks:
        stem, ending = os.path.splitext(notebook)
        if re.fullmatch(re.escape(stem) + _AGAIN + re.escape(ending), name, re.I):
            return notebook
    return name


class PlatformFileCollector(FileNameCollectorPlugin):
    """nbgrader's collector, which looks at all files before the first is collected: all of them, or none."""

    skip_unknown = Bool(False, help="Collect the others when the names of some files fit nobody in the gradebook.").tag(
        config=True
    )

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._sorted: Sorted | None = None

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """Return whose file it is and which notebook; None for one that is passed over.

        Ends the program, before anything is collected, with one sentence for each file that hinders it.
        """
        folder = self.parent._format_collect_path(self.parent.extracted_directory)
        if self._sorted is None:
            self._sorted = self._look(folder)
        found = self._sorted.owners.get(os.path.relpath(submitted_file, folder))
        return {"student_id": found[0], "file_id": found[1]} if found else None

    def _look(self, folder: str) -> Sorted:
        directory = self.parent.coursedir
        with Gradebook(directory.db_url, directory.course_id) as gradebook:
            students = [Student(s.id, s.first_name, s.last_name, s.email, s.lms_user_id) for s in gradebook.students]
        released = directory.format_path(directory.release_directory, ".", directory.assignment_id)
        paths = [path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if self._is_submission(path)]
        found = sort_files(paths, students, find_all_notebooks(released))
        problems = [*found.faults, *self._already_there(found)]
        if found.unknown and not self.skip_unknown:
            problems += [f"nobody in the gradebook: {path}" for path in found.unknown]
            problems.append(
                "add who is missing with `autograder roster CSV`, rename the file or leave it out of the archive, "
                "or pass over such files with --PlatformFileCollector.skip_unknown=True"
            )
        if problems:
            # What was unpacked is in the archive still; left there, it would make nbgrader ask for --force next time.
            shutil.rmtree(folder)
            self.parent.fail("Nothing was collected:\n  %s", "\n  ".join(problems))
        for path in found.unknown:
            self.log.warning("Passed over, it is nobody's in the gradebook: %s", path)
        if found.late:
            self.log.warning(
                "Canvas marks as late, without saying how late, so that no penalty will follow: %s",
                ", ".join(sorted(set(found.late))),
            )
        there = {owner for owner, _ in found.owners.values()}
        for student in there:
            # Made here, because nbgrader warns of each one that it makes.
            os.makedirs(
                directory.format_path(directory.submitted_directory, student, directory.assignment_id), exist_ok=True
            )
        nothing = ", ".join(sorted({student.id for student in students} - there)) or "nobody"
        print(f"{len(there)} of {len(students)} students have handed in; nothing here from: {nothing}.")
        return found

    def _already_there(self, found: Sorted) -> Iterator[str]:
        """Yield whose submission would be in the way; nbgrader would notice in the middle of the class."""
        directory = self.parent.coursedir
        for student in sorted({owner for owner, _ in found.owners.values()}):
            folder = Path(directory.format_path(directory.submitted_directory, student, directory.assignment_id))
            if not self.parent.force and folder.is_dir() and any(folder.iterdir()):
                yield f"{student} has a submission already, in {folder}: --force puts the new one in its place"

    def _is_submission(self, path: Path) -> bool:
        # "._name" and __MACOSX are what macOS puts into zip files beside what is meant.
        return (
            path.is_file()
            and path.suffix in self.valid_ext
            and not path.name.startswith("._")
            and "__MACOSX" not in path.parts
        )
