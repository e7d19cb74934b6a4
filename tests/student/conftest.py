"""A student's course folder: the students' notebooks, sources and a progress file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.build import clean_copy
from autograder.lesson import progress


@pytest.fixture
def course(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the course that a test may spoil."""
    folder = tmp_path / "course"
    folder.mkdir()
    clean_copy(root, folder)
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(tmp_path / "progress.jsonl"))
    return folder
