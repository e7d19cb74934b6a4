"""The class list, read from the CSV files that spreadsheets and learning platforms really write."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.messages import UsageError

# nbgrader's name of a column -> what others call it; compared without regard to case, spaces and punctuation.
COLUMNS = {
    "id": ("id", "student id", "student", "username", "user name", "login", "sis login id"),
    "first_name": ("first name", "given name", "forename"),
    "last_name": ("last name", "surname", "family name"),
    "email": ("email", "e-mail address", "email address", "mail"),
    "lms_user_id": ("lms user id", "canvas user id", "canvas id"),
}
MOST_FAULTS_SHOWN = 10
# A student's id names a folder, and is a part of names that the exchange splits at "+" and searches with "*" and "?".
_ID = re.compile(r"[\w@][\w.@-]*", re.ASCII)


@dataclass(frozen=True)
class Student:
    """One line of a roster; what a roster does not say is None."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    lms_user_id: str | None = None


def read_roster(file: Path) -> list[Student]:
    """Read a class list: UTF-8 with or without a byte order mark, fields between commas, semicolons or tabs.

    The first line names the columns; ``id`` is required, ``first_name``, ``last_name``, ``email`` and ``lms_user_id``
    (the number that Canvas puts into file names) are not, and others are passed over. Raises UsageError that names
    every line with a fault, so that one round of mending is enough.
    """
    rows = _rows(_text(file), file)
    try:
        line, header = next(rows)
    except StopIteration:
        raise UsageError(f"{file} is empty: its first line has to name the columns, such as id,first_name.") from None
    columns = _columns(header, file)
    students: list[Student] = []
    faults: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for line, fields in rows:
        fault = None
        if len(fields) > len(header) and any(fields[len(header) :]):
            fault = f"has {len(fields)} fields, the first line names {len(header)}; a comma in a name needs quotes"
        values = {name: fields[place].strip() if place < len(fields) else "" for name, place in columns.items()}
        student = Student(**{name: _composed(value) or None for name, value in values.items()} | {"id": values["id"]})
        fault = fault or _fault(student, seen, line)
        if fault:
            faults.append(f"line {line} {fault}")
        else:
            students.append(student)
    if faults:
        shown = "\n".join(f"  {each}" for each in faults[:MOST_FAULTS_SHOWN])
        more = f"\n  and {len(faults) - MOST_FAULTS_SHOWN} more" if len(faults) > MOST_FAULTS_SHOWN else ""
        raise UsageError(f"Nothing was taken from {file}; please mend:\n{shown}{more}")
    if not students:
        raise UsageError(f"{file} names no students, only columns.")
    return students


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"The roster {file} cannot be read: {error.strerror}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file} is not UTF-8 (line {line}), so that accents in it would be guessed. "
            'Save it again: in Excel as "CSV UTF-8", elsewhere with the encoding UTF-8.'
        ) from None


def _rows(text: str, file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line on which it begins, fields) of every row that is not empty."""
    lines = io.StringIO(text, newline="").readlines()
    before = 0
    delimiter = None
    if lines and (named := re.fullmatch(r"sep=(.)\s*", lines[0])):
        # What Excel reads and some programs write for it.
        delimiter, before = named[1], 1
    first = next((line for line in lines[before:] if line.strip()), "")
    delimiter = delimiter or max(",;\t", key=lambda each: len(next(csv.reader([first], delimiter=each), [])))
    reader = csv.reader(lines[before:], delimiter=delimiter, strict=True)
    begin = before + 1
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield begin, fields
            begin = before + reader.line_num + 1
    except csv.Error as error:
        raise UsageError(
            f"{file}, line {begin}: a quoted field is not closed or is followed by text ({error})."
        ) from None


def _columns(header: list[str], file: Path) -> dict[str, int]:
    known = {_plain(other): name for name, others in COLUMNS.items() for other in (name, *others)}
    columns: dict[str, int] = {}
    for place, text in enumerate(header):
        name = known.get(_plain(text))
        if name in columns:
            raise UsageError(f"{file}: the columns {header[columns[name]]!r} and {text!r} both mean {name}; keep one.")
        if name:
            columns[name] = place
    if "id" not in columns:
        raise UsageError(
            f"{file}: no column is called id (the first line names: {', '.join(header)}). The id is the name of a "
            "student's folder and, with nbgrader's exchange, of the account."
        )
    return columns


def _fault(student: Student, seen: dict[tuple[str, str], int], line: int) -> str | None:
    """Return what is wrong with a student, None when nothing is, and note what has to be unique."""
    if not student.id:
        return "has no id"
    if not _ID.fullmatch(student.id):
        return f"has the id {student.id!r}: letters without accents, digits and . _ - @ make an id"
    unique: tuple[tuple[str, str | None], ...] = (
        # Folders called Ada and ada are one folder on macOS and Windows.
        ("id", student.id.casefold()),
        ("address", student.email and student.email.casefold()),
        ("lms_user_id", student.lms_user_id),
    )
    for what, value in unique:
        if value and (before := seen.setdefault((what, value), line)) != line:
            return f"has the {what} {value!r}, which line {before} has already"
    return None


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))
