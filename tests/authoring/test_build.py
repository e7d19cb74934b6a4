"""What is committed is what the build gives, and nothing of a solution reaches the students."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.build import clean_copy, executed, solution_file, source_file, stale, student_file
from autograder.authoring.source import card_text, hints_text, read_source
from autograder.messages import UsageError
from autograder.registry import chapter_exercises
from autograder.student import start_page

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def test_every_committed_notebook_is_what_its_source_gives(root: Path) -> None:
    assert stale(root) == []


def test_prints_that_arrive_in_pieces_become_one_output() -> None:
    source = "import time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    assert [output.text for output in executed(notebook).cells[0].outputs] == ["one\ntwo\n"]


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the lines inside and outside the solution regions."""
    inside, outside, within = [], [], False
    for line in text.splitlines():
        if BEGIN in line or END in line:
            within = BEGIN in line
        else:
            (inside if within else outside).append(line.strip())
    return inside, outside


def test_no_solution_text_reaches_the_students(root: Path, chapter: str) -> None:
    solution = nbformat.read(solution_file(root, chapter), as_version=4)
    students = nbformat.read(student_file(root, chapter), as_version=4)
    inside, outside = _split("\n".join(cell.source for cell in solution.cells))
    assert inside, f"{chapter} has no solution region at all"
    released = {line.strip() for cell in students.cells for line in cell.source.splitlines()}
    # Lines such as `return x` or `else:` stand in many places; what must not leak is what only a solution holds.
    secret = {line for line in inside if len(line) > 12} - set(outside)
    assert not secret & released
    text = student_file(root, chapter).read_text(encoding="utf-8")
    assert "SOLUTION" not in text.replace("ClearSolutions", "")


def test_students_get_their_notebooks_and_no_instructors_file(root: Path) -> None:
    strangers = [
        str(path.relative_to(root))
        for path in (root / "notebooks").rglob("*")
        if path.is_file()
        and ".ipynb_checkpoints" not in path.parts
        and path.name != f"{path.parent.name}.ipynb"
        and path != root / "notebooks" / start_page.NAME
    ]
    assert strangers == []


def test_solutions_are_committed_with_their_outputs(root: Path, chapter: str) -> None:
    code = [
        cell for cell in nbformat.read(solution_file(root, chapter), as_version=4).cells if cell.cell_type == "code"
    ]
    assert all(cell.execution_count == number for number, cell in enumerate(code, start=1))
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    assert not any(output.get("name") == "stderr" for cell in code for output in cell.outputs)
    students = nbformat.read(student_file(root, chapter), as_version=4)
    assert not any(cell.outputs for cell in students.cells if cell.cell_type == "code")


def test_every_exercise_has_its_cells_its_card_and_its_hints(root: Path, chapter: str) -> None:
    notebook = nbformat.read(student_file(root, chapter), as_version=4)
    texts = [cell.source for cell in notebook.cells]
    identifiers = [cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata]
    exercises = chapter_exercises(chapter)
    assert exercises, f"{chapter} has no exercises"
    for exercise in exercises:
        assert card_text(exercise, exercise.card) in texts
        assert hints_text(exercise.hints) in texts
        assert identifiers.index(exercise.name) < identifiers.index(f"{exercise.name}_check")
    assert len(identifiers) == len(set(identifiers)) == 2 * len(exercises)


def _course_with(tmp_path: Path, root: Path, chapter: str, text: str) -> Path:
    clean_copy(root, tmp_path)
    source_file(tmp_path, chapter).write_text(text, encoding="utf-8")
    return tmp_path


def test_an_edited_source_is_noticed(tmp_path: Path, root: Path, chapter: str) -> None:
    text = source_file(root, chapter).read_text(encoding="utf-8") + "\n# %% [markdown]\n# One more sentence.\n"
    said = stale(_course_with(tmp_path, root, chapter, text), [chapter])
    assert len(said) == 1 and "is not what its source gives" in said[0] and "make notebooks" in said[0]


def test_an_edited_students_notebook_is_noticed(tmp_path: Path, root: Path, chapter: str) -> None:
    clean_copy(root, tmp_path)
    file = student_file(tmp_path, chapter)
    file.write_text(file.read_text(encoding="utf-8").replace("NotImplementedError", "ValueError"), encoding="utf-8")
    said = stale(tmp_path, [chapter])
    assert len(said) == 1 and "is not what nbgrader makes" in said[0]


@pytest.mark.parametrize(
    ("pattern", "replacement", "sentence"),
    [
        (r'"points": \d+', '"points": 99', "its check cell says 99"),
        (r"# \{\{card (\w+)\}\}", r"# Look: {{card \1}}", "must be alone in its cell"),
        (r"# \{\{card \w+\}\}", "# {{card my_batchnrom}}", "my_batchnorm"),
    ],
)
def test_a_source_that_does_not_fit_its_exercise_is_refused(
    tmp_path: Path, root: Path, pattern: str, replacement: str, sentence: str
) -> None:
    chapter = "ch03_buffers_and_state"
    text, count = re.subn(pattern, replacement, source_file(root, chapter).read_text(encoding="utf-8"), count=1)
    assert count == 1
    with pytest.raises(UsageError, match=sentence):
        read_source(source_file(_course_with(tmp_path, root, chapter, text), chapter))


def test_the_command_line_names_an_unknown_chapter(root: Path) -> None:
    command = [sys.executable, "-m", "autograder.cli", "build", "--check", "ch99", "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "ch99" in done.stderr and "ch03_buffers_and_state" in done.stderr and "Traceback" not in done.stderr
