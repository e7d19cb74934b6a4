"""One small local file that remembers predictions, answers and checks: JSON lines, only ever appended to.

Nothing depends on it. A file that is missing, damaged, unreadable or on a full disk changes nothing for the
reader.
"""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROGRESS_VARIABLE = "DEEP_FRAMEWORK_MECHANICS_PROGRESS"
# A grader's runs are nobody's progress.
GRADING_VARIABLES = ("AUTOGRADER_GRADING", "AUTOGRADER_GRADING_SEED")

# Builds and tests run chapters that nobody reads.
NOWHERE = "nowhere"

NOT_KEPT = "The progress file cannot be written, so answers are not remembered; everything else works."


def location() -> Path:
    """Return where the progress file is: what the environment names, else the user's data folder."""
    if named := os.environ.get(PROGRESS_VARIABLE):
        return Path(os.path.expanduser(named))
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification asks to ignore a relative path.
    if not os.path.isabs(data):
        data = os.path.expanduser(os.path.join("~", ".local", "share"))
    return Path(data) / "deep-framework-mechanics" / "progress.jsonl"


def grading() -> bool:
    """Return whether this process grades, in which case progress is neither written nor read."""
    return any(os.environ.get(name) for name in GRADING_VARIABLES)


def kept() -> bool:
    """Return whether there is a reader whose progress is kept: not while grading, building or testing."""
    return not grading() and os.environ.get(PROGRESS_VARIABLE) != NOWHERE


def record(kind: str, id: str, value: Any) -> bool:
    """Append one entry.

    Arguments: the kind (prediction, quiz or check), the id of the question or exercise, and a value that JSON
    can hold.
    Returns False when it could not be kept, True otherwise (also where nothing is to be kept, see ``kept``).
    Raises nothing.
    """
    if not kept():
        return True
    entry = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "kind": kind, "id": id, "value": value}
    try:
        line = json.dumps(entry, ensure_ascii=False, default=str) + "\n"
        path = location()
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, line.encode("utf-8", "replace"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
    return True


def _append(path: Path, line: bytes) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a file")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size:
            # An entry cut short by a full disk has no end of line; ours must not be glued to it. If another
            # process writes in between, the worst is an empty line.
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            if os.read(descriptor, 1) != b"\n":
                line = b"\n" + line
        # One write with O_APPEND: two notebooks that are open at once cannot write into each other's lines.
        if os.write(descriptor, line) != len(line):
            raise OSError("the disk is full")
    finally:
        os.close(descriptor)


def entries() -> list[dict[str, Any]]:
    """Return every readable entry in the order of writing; damaged lines are skipped. Raises nothing."""
    if not kept():
        return []
    try:
        path = location()
        # A pipe or a device given as the progress file would block, or never end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return []
        content = path.read_bytes()
    except (OSError, ValueError):
        return []
    found = (_entry(line) for line in content.split(b"\n"))
    return [entry for entry in found if entry is not None]


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not {"time", "kind", "id", "value"} <= entry.keys():
        return None
    return entry if all(isinstance(entry[name], str) for name in ("time", "kind", "id")) else None


def first_answers() -> dict[str, dict[str, Any]]:
    """Return, for each question that was answered or predicted, the first answer given.

    Each is ``{"option": number from 1, "right": whether it was right}``; later answers change nothing.
    Raises nothing.
    """
    first: dict[str, dict[str, Any]] = {}
    for entry in entries():
        value = entry["value"]
        if entry["kind"] not in ("prediction", "quiz") or not isinstance(value, dict):
            continue
        if isinstance(value.get("right"), bool):
            first.setdefault(entry["id"], value)
    return first


def exercises_passed() -> list[str]:
    """Return the exercises whose check has passed at least once, the earliest first. Raises nothing."""
    passed: dict[str, None] = {}
    for entry in entries():
        value = entry["value"]
        if entry["kind"] == "check" and isinstance(value, dict) and value.get("passed") is True:
            passed.setdefault(entry["id"])
    return list(passed)


def last_passed() -> dict[str, float]:
    """Return for each exercise that has passed its check when it last did, in seconds since 1970. Raises nothing."""
    passed: dict[str, float] = {}
    for entry in entries():
        value = entry["value"]
        if entry["kind"] == "check" and isinstance(value, dict) and value.get("passed") is True:
            try:
                passed[entry["id"]] = datetime.fromisoformat(entry["time"]).timestamp()
            except (ValueError, OverflowError):
                continue
    return passed
