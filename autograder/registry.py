"""Finding exercises and their misconceptions by name. The file's name is the exercise's name."""

from __future__ import annotations

import difflib
import functools
import importlib
from pathlib import Path

from autograder.exercise import Exercise, Misconception
from autograder.messages import UsageError

_EXERCISES = Path(__file__).parent / "exercises"


@functools.cache
def exercise_names() -> dict[str, str]:
    """Return exercise name -> chapter folder, in the order of chapters and files, without importing any of them."""
    return {
        file.stem: folder.name
        for folder in sorted(_EXERCISES.glob("ch[0-9][0-9]_*"))
        for file in sorted(folder.glob("*.py"))
        if not file.stem.startswith("_")
    }


def chapter_exercises(chapter: str) -> list[Exercise]:
    """Return the exercises of one chapter folder."""
    return [load_exercise(name) for name, folder in exercise_names().items() if folder == chapter]


@functools.cache
def load_exercise(name: str) -> Exercise:
    """Return the exercise called ``name``. Raises UsageError with the nearest name when there is none."""
    names = exercise_names()
    if name not in names:
        nearest = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.4)
        hint = f'Did you mean "{nearest[0]}"?' if nearest else f"The exercises are: {', '.join(names)}."
        raise UsageError(f'There is no exercise called "{name}". {hint}')
    try:
        return importlib.import_module(f"autograder.exercises.{names[name]}.{name}").exercise
    except PermissionError:  # While a notebook is graded, no exercise but its own can be read.
        raise UsageError(f'"{name}" is an exercise of another chapter, and cannot be checked here.') from None


@functools.cache
def load_misconceptions(name: str) -> tuple[Misconception, ...]:
    """Return the misconceptions of an exercise; imported only when something has to be diagnosed or proven."""
    chapter = exercise_names()[name]
    return importlib.import_module(f"autograder.exercises.{chapter}.misconceptions.{name}").misconceptions
