"""A fresh chapter, with the old answers kept beside it."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from autograder.authoring.build import chapters, student_file, student_text
from autograder.messages import UsageError


def reset(root: Path, wanted: str) -> tuple[Path, Path | None]:
    """Put the chapter's notebook back as it was handed out; return it and where the old one is kept.

    The old one stays in the same folder, with the date and time in its name; None where there was none. Raises
    UsageError for an unknown chapter, for several, and where the folder cannot be written in.
    """
    found = chapters(root, [wanted])
    if len(found) != 1:
        raise UsageError(f"{wanted!r} fits {len(found)} chapters; name one, such as ch03.")
    file = student_file(root, found[0])
    text = student_text(root, found[0])
    kept = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            if file.read_text(encoding="utf-8") == text:
                return file, None
            kept = _unused(file)
            os.replace(file, kept)
        beside = file.with_suffix(".new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, file)
    except OSError as error:
        if kept is not None and not file.exists():
            os.replace(kept, file)
        raise UsageError(f"{file.parent} cannot be written in ({error.strerror}); nothing was changed.") from None
    return file, kept


def _unused(file: Path) -> Path:
    moment = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    for count in range(1, 1000):
        again = "" if count == 1 else f"-{count}"
        path = file.with_name(f"{file.stem}-answers-{moment}{again}.ipynb")
        if not path.exists():
            return path
    raise UsageError(f"{file.parent} is full of kept answers of this very second.")
