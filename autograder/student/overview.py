"""The course at a glance: its chapters, how long they take, and what of them is solved. Needs no torch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.lesson import progress
from autograder.registry import exercise_names

WORDS_PER_MINUTE = 150
MINUTES_PER_CODE_CELL = 0.5


@dataclass(frozen=True)
class Chapter:
    """One chapter: its folder, title, honest minutes, its exercises in the order of the notebook, those passed."""

    folder: str
    title: str
    minutes: int
    exercises: tuple[str, ...]
    passed: tuple[str, ...]

    @property
    def number(self) -> str:
        """``ch03``."""
        return self.folder.split("_")[0]

    @property
    def left(self) -> tuple[str, ...]:
        """The exercises whose check has not passed yet."""
        return tuple(name for name in self.exercises if name not in self.passed)


def course(root: Path) -> list[Chapter]:
    """Return the chapters under ``root/notebooks``. A notebook that cannot be read keeps its folder's name as title."""
    passed = set(progress.exercises_passed())
    folders = sorted(folder for folder in (root / "notebooks").glob("ch[0-9][0-9]_*") if folder.is_dir())
    return [_chapter(folder, passed) for folder in folders]


def _chapter(folder: Path, passed: set[str]) -> Chapter:
    names = [name for name, chapter in exercise_names().items() if chapter == folder.name]
    cells = _cells(folder / f"{folder.name}.ipynb")
    ids = [str(_settings(cell).get("grade_id", "")) for cell in cells]
    order = {name.removesuffix("_check"): place for place, name in enumerate(ids)}
    names.sort(key=lambda name: order.get(name, len(ids)))
    prose = "\n".join(_text(cell) for cell in cells if cell.get("cell_type") == "markdown")
    title = re.search(r"^# (.+)$", prose, re.MULTILINE)
    words, cards = len(prose.split()), re.findall(r"\| \*\*Time\*\* \| about (\d+) minutes", prose)
    code = sum(cell.get("cell_type") == "code" for cell in cells)
    minutes = words / WORDS_PER_MINUTE + code * MINUTES_PER_CODE_CELL + sum(map(int, cards))
    return Chapter(
        folder.name,
        title[1] if title else folder.name,
        5 * round(minutes / 5),
        tuple(names),
        tuple(name for name in names if name in passed),
    )


def _cells(file: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8")).get("cells", [])
    except (OSError, ValueError, AttributeError):
        return []
    return [cell for cell in found if isinstance(cell, dict)] if isinstance(found, list) else []


def _settings(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = cell.get("metadata")
    settings = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return settings if isinstance(settings, dict) else {}


def _text(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def next_chapter(chapters: list[Chapter]) -> Chapter | None:
    """Return the first chapter that has an exercise left, or None when all is solved."""
    return next((chapter for chapter in chapters if chapter.left), None)


def progress_line(exercise: str) -> str:
    """Return what a check ends with: ``ch03: 2 of 3 solved, next: save_and_resume``."""
    folder = exercise_names()[exercise]
    passed = set(progress.exercises_passed())
    names = [name for name, chapter in exercise_names().items() if chapter == folder]
    solved, left = [n for n in names if n in passed], [n for n in names if n not in passed]
    number = folder.split("_")[0]
    if left:
        return f"{number}: {len(solved)} of {len(names)} solved, next: {left[0]}"
    later = [chapter for chapter in dict.fromkeys(exercise_names().values()) if chapter > folder]
    return f"{number}: all {len(names)} solved" + (f", next: {later[0]}" if later else ", and the course with it")
