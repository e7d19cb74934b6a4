"""Writing CSV that a spreadsheet reads as text and numbers, and never as something to calculate or to start."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from autograder.messages import UsageError

Cell = str | float | int | None

# A text that begins so is a formula to Excel, LibreOffice and Google Sheets (OWASP, "CSV Injection").
_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def guarded(text: str) -> str:
    """Return a text with an apostrophe in front where a spreadsheet would take it for a formula."""
    # A dash alone calculates nothing, and is what Moodle calls an open score.
    return f"'{text}" if text.lstrip(" ").startswith(_STARTS_FORMULA) and text != "-" else text


def write_csv(file: Path, rows: Iterable[Sequence[Cell]], *, mark: bool = False) -> None:
    """Write rows as UTF-8 with the quoting of RFC 4180; texts are guarded, numbers have at most two decimals.

    ``mark`` puts a byte order mark in front, by which Excel knows UTF-8. A file is written whole or not at all, and
    only its owner may read it. Raises UsageError when it cannot be written.
    """
    fresh = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as out:
            fresh.chmod(0o600)
            writer = csv.writer(out, lineterminator="\r\n")
            writer.writerows([_shown(cell) for cell in row] for row in rows)
        fresh.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise UsageError(f"{file} cannot be written: {error.strerror or error}.") from None


def _shown(cell: Cell) -> str | int:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return guarded(cell)
    return cell if isinstance(cell, int) else f"{cell:.2f}".rstrip("0").rstrip(".")
