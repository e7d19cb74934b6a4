"""The students' notebooks run from top to bottom: only the checks of unsolved exercises stop, each by its own name."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder import evaluate
from autograder.authoring.build import executed, solution_parts, student_file
from autograder.grading.ticket import grading_seed
from autograder.registry import chapter_exercises


def _errors(notebook: nbformat.NotebookNode) -> dict[str, tuple[str, str]]:
    found = {}
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                name = cell.metadata.get("nbgrader", {}).get("grade_id", f"cell {number}: {cell.source[:60]}")
                found[name] = (output.ename, "\n".join(output.traceback))
    return found


def test_only_the_checks_of_unsolved_exercises_fail(root: Path, chapter: str) -> None:
    notebook = executed(nbformat.read(student_file(root, chapter), as_version=4), allow_errors=True)
    errors = _errors(notebook)
    assert set(errors) == {f"{exercise.name}_check" for exercise in chapter_exercises(chapter)}
    for identifier, (name, traceback) in errors.items():
        exercise = identifier.removesuffix("_check")
        assert name == "NotSolvedYet"
        # What the student sees is one line: the name of the error, the exercise, and what to do.
        assert traceback.startswith(f"NotImplementedError: {exercise} is still to be written")
        assert len(traceback.splitlines()) == 1


@pytest.mark.parametrize("phrase", ["spring", "autumn"])
def test_every_solution_gets_every_point(root: Path, chapter: str, phrase: str) -> None:
    for exercise in chapter_exercises(chapter):
        verdict = evaluate(exercise.name, *solution_parts(root, exercise), seed=grading_seed(phrase))
        assert verdict.passed and verdict.score == 1, exercise.name
