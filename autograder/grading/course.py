"""A course's folder as nbgrader sees it: its configuration, its directories, its secret."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.grading.limits import MEGABYTE, Limits
from autograder.grading.ticket import grading_seed
from autograder.messages import UsageError


@dataclass
class Course:
    """One course: where things are, and how nbgrader is configured for it."""

    root: Path
    directory: CourseDirectory
    config: Config

    @property
    def state(self) -> Path:
        """Return the folder for stored results and journals; it can be removed at any time, at the cost of work."""
        return self.root / ".grading"


def load_course(root: Path) -> Course:
    """Read a course's nbgrader configuration as nbgrader would when started there. Raises UsageError without one."""
    if not (root / "nbgrader_config.py").is_file():
        raise UsageError(f"{root} holds no nbgrader_config.py: run this from the course's folder, or give --root.")
    from nbgrader.apps.baseapp import NbGrader

    os.chdir(root)
    app = NbGrader(log_level=logging.ERROR)
    app.initialize([])
    return Course(root, app.coursedir, app.config)


def limits_of(config: Config, **changes: Any) -> Limits:
    """Return the limits that the configuration sets on ExecuteForGrading."""
    section = config.get("ExecuteForGrading", {})
    named = {
        "cell_seconds": section.get("timeout"),
        "notebook_seconds": section.get("notebook_seconds"),
        "memory": _megabytes(section.get("memory_megabytes")),
        "disk": _megabytes(section.get("disk_megabytes")),
        "processes": section.get("processes"),
    }
    return replace(Limits(), **{name: value for name, value in {**named, **changes}.items() if value is not None})


def _megabytes(value: int | None) -> int | None:
    return None if value is None else value * MEGABYTE


def seed_of(config: Config, root: Path) -> int:
    """Return the grading seed: from the configured phrase, or the course's own."""
    return grading_seed(config.get("ExecuteForGrading", {}).get("grading_seed") or course_secret(root))


def course_secret(folder: Path) -> str:
    """Return the secret of the course in ``folder``, made once and readable by its owner only.

    It is written elsewhere and then linked to its place, so that two who start at once read the same one.
    """
    file = folder / "grading_seed.txt"
    with contextlib.suppress(FileNotFoundError):
        if text := file.read_text(encoding="utf-8").strip():
            return text
    fresh = folder / f".grading_seed.{os.getpid()}.{secrets.token_hex(4)}"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(secrets.token_hex(16))
    try:
        os.link(fresh, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(fresh)
    return file.read_text(encoding="utf-8").strip()
