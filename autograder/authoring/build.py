"""Building the notebooks: source text -> executed solution -> students' version, and checking that both are fresh."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from autograder.authoring.source import read_source
from autograder.exercise import Exercise
from autograder.lesson.progress import NOWHERE, PROGRESS_VARIABLE
from autograder.messages import UsageError

SECONDS_PER_CELL = 120
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def chapters(root: Path, wanted: Sequence[str] = ()) -> list[str]:
    """Return the chapter folders under ``solutions/``; ``wanted`` may shorten them (``ch03``).

    Raises UsageError for one that does not exist.
    """
    known = sorted(folder.name for folder in (root / "solutions").glob("ch[0-9][0-9]_*") if folder.is_dir())
    if not wanted:
        return known
    chosen = [name for name in known if any(name == text or name.startswith(f"{text}_") for text in wanted)]
    for text in wanted:
        if not any(name == text or name.startswith(f"{text}_") for name in known):
            raise UsageError(f"There is no chapter {text!r} in solutions/. The chapters are: {', '.join(known)}.")
    return chosen


def source_file(root: Path, chapter: str) -> Path:
    """Return the chapter's percent text; its name is the folder's."""
    return root / "solutions" / chapter / f"{chapter}.py"


def solution_file(root: Path, chapter: str) -> Path:
    """Return the chapter's executed notebook."""
    return root / "solutions" / chapter / f"{chapter}.ipynb"


def student_file(root: Path, chapter: str) -> Path:
    """Return the chapter's notebook for students."""
    return root / "notebooks" / chapter / f"{chapter}.ipynb"


def build(root: Path, wanted: Sequence[str] = ()) -> list[Path]:
    """Build the solution and the students' notebook of each chapter; return the files written.

    A chapter whose solution does not run leaves its old files as they are: the new ones replace them at the end.
    """
    written = []
    for chapter in chapters(root, wanted):
        notebook = executed(read_source(source_file(root, chapter)))
        written.append(_replace(solution_file(root, chapter), nbformat.writes(notebook) + "\n"))
        written.append(_replace(student_file(root, chapter), student_text(root, chapter)))
    return written


def executed(notebook: NotebookNode, allow_errors: bool = False) -> NotebookNode:
    """Run a notebook in an empty folder with a fresh kernel and return it with its outputs.

    Raises UsageError with the first cell that fails and its error, unless ``allow_errors``.
    """
    with tempfile.TemporaryDirectory(prefix="build-") as folder:
        client = NotebookClient(
            notebook,
            timeout=SECONDS_PER_CELL,
            kernel_name="python3",
            allow_errors=allow_errors,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        # The author's own progress and grading seed must not show in what is committed.
        environment = {**os.environ, PROGRESS_VARIABLE: NOWHERE}
        environment.pop("AUTOGRADER_GRADING_SEED", None)
        try:
            client.execute(env=environment, stderr=subprocess.DEVNULL)
        except CellExecutionError as error:
            raise UsageError(f"A cell of the notebook does not run:\n{error}") from error
    _without_widgets(notebook)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def _without_widgets(notebook: NotebookNode) -> None:
    """Take out the live controls: without the kernel that made them they are an error box with a random name.

    GitHub does not show a notebook at all whose metadata has widgets without their state.
    """
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
            cell.outputs = [one for one in cell.outputs if one.get("data", True)]


def solution_parts(root: Path, exercise: Exercise) -> list[Any]:
    """Return what the chapter's solution defines for one exercise, by running its imports and its answer cells."""
    notebook = read_source(source_file(root, exercise.chapter))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    answers = [cell.source for cell in code if cell.metadata.get("nbgrader", {}).get("solution")]
    namespace: dict[str, Any] = {}
    for source in [code[0].source, *answers]:
        exec(source, namespace)
    return [namespace[name] for name in exercise.parts]


def student_text(root: Path, chapter: str) -> str:
    """Return the students' notebook, made by nbgrader from the chapter's solution notebook, as text."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        config: Config = _course_config(root)
        config.CourseDirectory.root = str(root)
        config.CourseDirectory.release_directory = folder
        config.CourseDirectory.db_url = f"sqlite:///{folder}/unused.db"
        config.SaveCells.enabled = False
        config.GenerateAssignment.no_database = True
        config.GenerateAssignment.force = True
        config.CourseDirectory.assignment_id = chapter
        coursedir = CourseDirectory(config=config)
        GenerateAssignment(coursedir=coursedir, config=config).start()
        made = Path(folder) / chapter
        strangers = sorted(file.name for file in made.iterdir() if file.name != f"{chapter}.ipynb")
        if strangers:
            raise UsageError(f"{chapter}: nbgrader would hand students {', '.join(strangers)}; see nbgrader_config.py")
        return (made / f"{chapter}.ipynb").read_text(encoding="utf-8").rstrip("\n") + "\n"


def _course_config(root: Path) -> object:
    from traitlets.config.loader import PyFileConfigLoader

    return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()


def _replace(file: Path, text: str) -> Path:
    """Write a file so that it is either the old one or the new one, never half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, file)
    return file


def stale(root: Path, wanted: Sequence[str] = ()) -> list[str]:
    """Return one sentence for each committed notebook that is not what its source gives. Nothing is executed."""
    said: list[str] = []
    for chapter in chapters(root, wanted):
        said.extend(_stale_chapter(root, chapter))
    built = {folder.name for folder in (root / "notebooks").glob("*") if folder.is_dir()}
    said.extend(f"notebooks/{name} has no source in solutions/." for name in sorted(built - set(chapters(root))))
    return said


def _stale_chapter(root: Path, chapter: str) -> Iterable[str]:
    remedy = f"Run: make notebooks CHAPTER={chapter}"
    for file in (solution_file(root, chapter), student_file(root, chapter)):
        if not file.is_file():
            yield f"{file.relative_to(root)} is missing. {remedy}"
            return
    fresh = read_source(source_file(root, chapter))
    committed = nbformat.read(solution_file(root, chapter), as_version=4)
    if _essence(fresh) != _essence(committed):
        yield f"{solution_file(root, chapter).relative_to(root)} is not what its source gives. {remedy}"
        return
    if student_text(root, chapter) != student_file(root, chapter).read_text(encoding="utf-8"):
        yield f"{student_file(root, chapter).relative_to(root)} is not what nbgrader makes of the solution. {remedy}"


def _essence(notebook: NotebookNode) -> list[tuple]:
    return [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]


def clean_copy(root: Path, target: Path) -> None:
    """Copy what a course folder needs from the repository: sources, students' notebooks and the configuration."""
    for name in ("solutions", "notebooks"):
        shutil.copytree(root / name, target / name, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copy(root / "nbgrader_config.py", target)
