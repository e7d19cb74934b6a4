"""Every test of the lesson has its own progress file and its own questions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.lesson import panel, progress, questions

QUESTIONS = Path(__file__).resolve().parent / "questions"
# What a notebook of these tests runs first: the questions of the tests instead of the course's own.
SETUP_CELL = """\
import os
from pathlib import Path

from autograder.lesson import predict, questions, quiz, recall

questions.QUESTIONS_FOLDER = Path(os.environ["LESSON_TEST_QUESTIONS"])
"""


@pytest.fixture(autouse=True)
def progress_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A progress file of this test alone, which does not exist yet."""
    path = tmp_path / "progress" / "progress.jsonl"
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(path))
    for name in progress.GRADING_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield path


@pytest.fixture(autouse=True)
def questions_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTIONS_FOLDER", QUESTIONS)


@pytest.fixture(autouse=True)
def nothing_predicted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test stands for a kernel of its own."""
    monkeypatch.setattr(panel, "predicted_here", {})


@pytest.fixture
def kernel_environment(tmp_path: Path, progress_file: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """What a kernel started by a test needs: this repository, these questions, nobody's own settings."""
    monkeypatch.setenv("LESSON_TEST_QUESTIONS", str(QUESTIONS))
    paths = [str(root), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
