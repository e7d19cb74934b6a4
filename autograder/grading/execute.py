"""nbgrader's execution step: the same sandbox and judge, for ``nbgrader autograde`` and formgrader's button."""

from __future__ import annotations

import atexit
import shutil
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Float, Integer, Unicode

from autograder.grading.assignment import Assignment, preload_of
from autograder.grading.confine import BUBBLEWRAP, LANDLOCK, NAMESPACES, NONE
from autograder.grading.course import course_secret, limits_of
from autograder.grading.grade import Settings, close_sandboxes, execute_and_judge
from autograder.grading.limits import MEGABYTE, Limits
from autograder.grading.store import Store
from autograder.grading.submitted_files import Unreadable, links_beside, read_files, shown
from autograder.grading.ticket import grading_seed

_DEFAULT = Limits()
atexit.register(close_sandboxes)


class ExecuteForGrading(NbGraderPreprocessor):
    """Execute a submission in the sandbox and let the judge score it, in place of nbgrader's Execute.

    A result that ``autograder grade`` has stored is taken from there. The sandbox lives as long as the process, so
    that the second submission, or the second click, is quick.
    """

    grading_seed = Unicode(
        "", help="Any text. Empty: a seed of this course's own, kept in the file grading_seed.txt."
    ).tag(config=True)
    timeout = Integer(round(_DEFAULT.cell_seconds), help="Seconds for one cell.").tag(config=True)
    notebook_seconds = Float(_DEFAULT.notebook_seconds, help="Seconds for one notebook.").tag(config=True)
    memory_megabytes = Integer(_DEFAULT.memory // MEGABYTE, help="What a process may allocate.").tag(config=True)
    disk_megabytes = Integer(_DEFAULT.disk // MEGABYTE, help="What a submission may write.").tag(config=True)
    processes = Integer(_DEFAULT.processes, help="How many processes and threads it may have.").tag(config=True)
    sandbox = Enum(
        ("auto", NAMESPACES, BUBBLEWRAP, LANDLOCK, NONE), "auto", help="The best sandbox there is, or one kind."
    ).tag(config=True)
    source_directory = Unicode("solutions", help="Where the reference solutions are.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute and judge one sanitized notebook. Raises SandboxError where there is no sandbox, Unreadable for a
        notebook that is a link and for more files beside it than are taken."""
        # JupyterLab may have been started above the course, and then formgrader works there.
        root = Path(self.config.CourseDirectory.get("root") or Path.cwd())
        names = resources["nbgrader"]
        folder = Path(resources.get("metadata", {}).get("path") or ".")
        preload = preload_of(root / self.source_directory / names["assignment"], [names["notebook"]])
        settings = Settings(
            Assignment(names["assignment"], (), preload),
            grading_seed(self.grading_seed or course_secret(root)),
            ("cpu",),
            limits_of(self.config),
            self.sandbox,
            str(root / ".grading" / "results"),
        )
        self._remove_links(root, folder, names)
        files = read_files(folder, (), settings.limits)
        notes: list[str] = []
        nb, judgements, unfinished, _, _, _ = execute_and_judge(nb, files, settings, Store(Path(settings.store)), notes)
        for note in [*notes, *([unfinished] if unfinished else [])]:
            self.log.warning(note)
        for judgement in judgements:
            self.log.info("%s: %s of %s points", judgement.cell, judgement.points, judgement.maximum)
        return nb, resources

    def _remove_links(self, root: Path, folder: Path, names: dict[str, str]) -> None:
        """Remove what nbgrader copied because the student handed in a link to it. Raises Unreadable for a notebook."""
        place = self.config.get("CourseDirectory", {}).get("submitted_directory") or "submitted"
        own = root / self.source_directory / names["assignment"]
        submitted = root / place / names["student"] / names["assignment"]
        if (submitted / f"{names['notebook']}.ipynb").is_symlink():
            raise Unreadable(f"{names['notebook']}.ipynb of {names['student']} is not an ordinary file.")
        for name in links_beside(submitted, ()):
            if (own / name).exists():  # The instructor's file lies in its place.
                continue
            self.log.warning("%s is a link to elsewhere, and is left out.", shown(name))
            copied = folder / name
            if copied.is_dir() and not copied.is_symlink():
                shutil.rmtree(copied)
            else:
                copied.unlink(missing_ok=True)
