"""Every chapter through ``autograder grade``: its solution earns every point, the notebook as released earns none."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.authoring.build import chapters
from autograder.benchmarks import generated_class
from autograder.cli import main
from autograder.grading import command
from autograder.grading.grade import close_sandboxes
from autograder.registry import exercise_names, load_exercise


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course in which one student has handed in the solution of every chapter, and one every chapter untouched."""
    folder = tmp_path_factory.mktemp("all") / "course"
    folder.mkdir()
    generated_class.clean_copy(root, folder)
    names = chapters(root)
    generated_class.release(folder, names)
    for chapter in names:
        for kind in ("right", "untouched"):
            notebook = generated_class.submission(folder, chapter, kind)
            generated_class.hand_in(folder, kind, chapter, notebook)
    return folder


@contextlib.contextmanager
def _here(options: object, submissions: int) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """One thread of this process, which has imported torch already, in place of two new processes a chapter."""
    with ThreadPoolExecutor(1) as pool:
        yield pool, 1


def test_a_solution_earns_every_point_and_an_untouched_notebook_none(
    course: Path, chapter: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "executor", _here)
    monkeypatch.chdir(course)
    summary = tmp_path / "summary.json"
    try:
        assert main(["grade", chapter, "--root", str(course), "--json", str(summary)]) == 0
    finally:
        close_sandboxes()
    report = json.loads(summary.read_text())
    expected = {
        f"{name}_check": load_exercise(name).points for name, place in exercise_names().items() if place == chapter
    }
    points = {outcome["student"]: outcome["points"] for outcome in report["outcomes"]}
    assert points == {"right": expected, "untouched": dict.fromkeys(expected, 0)}
    reasons = [entry["reason"] for outcome in report["outcomes"] for entry in outcome["judgements"] if entry["reason"]]
    assert not [reason for reason in reasons if "could not" in reason or "cannot be read" in reason]
    # No solution is suspected of anything, and nothing that it needs was missing.
    assert [note for note in report["notes"] if "sandbox" not in note] == []
    shutil.rmtree(course / "autograded")
