"""``preflight()``: from the notebook itself, what would break its grading."""

from __future__ import annotations

from pathlib import Path

from autograder.messages import UsageError
from autograder.student import preflight as look_over


def preflight(chapter: str | None = None) -> None:
    """Say what would break the grading of a chapter as it is saved; without a name, of the one in this folder.

    Only what is saved is looked at: save first. Raises UsageError for an unknown chapter, and outside a course.
    """
    here = Path.cwd().resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / "solutions").is_dir()), None)
    if root is None or not (root / "notebooks").is_dir():
        raise UsageError(f"{here} is in no course's folder, so that there is nothing to compare the notebook with.")
    name = chapter or here.name
    own = here / f"{name}.ipynb"
    print(look_over.report(name, look_over.preflight(root, name, own if own.is_file() else None)))
