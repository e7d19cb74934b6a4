"""What goes wrong in a student's hour, each tried for real: one sentence, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.authoring.build import student_file
from autograder.cli import main
from autograder.lesson import progress
from autograder.student.preflight import preflight
from tests.grading.answers import SUBMISSIONS

CHAPTER = "ch03_buffers_and_state"
IMPORTS = "from autograder import check, predict"


@pytest.fixture
def kernel_folder(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a kernel finds its settings: those that ``make lab`` installs."""
    settings = tmp_path / "ipython" / "profile_default"
    settings.mkdir(parents=True)
    shutil.copy(root / "autograder" / "lesson" / "ipython_config.py", settings)
    monkeypatch.setenv("IPYTHONDIR", str(settings.parent))
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(tmp_path / "progress.jsonl"))
    return settings.parent


def _errors(*cells: str) -> list[str]:
    """Run cells in a fresh kernel and return the traceback shown under each, empty where there is none."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    return [
        "\n".join(line for output in cell.outputs if output.output_type == "error" for line in output.traceback)
        for cell in notebook.cells
    ]


def test_after_a_restart_and_before_an_answer_a_cell_says_what_to_run(kernel_folder: Path) -> None:
    answer = SUBMISSIONS["ada_all_right"]["my_dropout"]
    check = 'check("my_dropout", MyDropout)'
    restarted, asked, _, early, _, passed, own = _errors(
        check, 'predict("ch03-double")', f"import torch\nfrom torch import nn\n{IMPORTS}", check, answer, check, "oops"
    )
    assert restarted == (
        "NameError: check does not exist yet in this kernel. Run the first cell of the chapter, then this one. "
        "After a restart: Run, Run All Above Selected Cell."
    )
    assert asked.startswith("NameError: predict does not exist yet in this kernel. Run the first cell")
    assert early.startswith("NameError: MyDropout does not exist yet in this kernel. Run the cell with your answer")
    assert passed == "" and "Traceback" in own


def test_an_old_torch_is_one_sentence_in_the_kernel(
    kernel_folder: Path, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old" / "torch-2.5.1.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(old.parent), str(root)]))
    (said,) = _errors(f"import torch\n{IMPORTS}")
    assert said == (
        "UsageError: This course explains torch 2.13, and here is torch 2.5.1. Run `make lab` for the right one."
    )


def test_an_answer_that_was_not_saved_is_named(course: Path, capsys: pytest.CaptureFixture) -> None:
    file = student_file(course, CHAPTER)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    progress.record("check", "my_dropout", {"passed": True, "score": 1.0})
    progress.record("check", "my_batchnorm", {"passed": False, "score": 0.5})
    sentence = f"my_dropout passed its check after {file.name} was saved: that answer may not be in the file"
    assert [one.what for one in preflight(course, "ch03") if "saved" in one.what] == [sentence]
    assert main(["check", "ch03", "--root", str(course)]) == 0
    assert f"  ! {sentence}; save it in JupyterLab (Ctrl+S)." in capsys.readouterr().out
    os.utime(file)
    assert not [one for one in preflight(course, "ch03") if "saved" in one.what]


def test_a_notebook_of_another_kernel_is_named_and_can_be_handed_in(course: Path) -> None:
    file = student_file(course, CHAPTER)
    notebook = nbformat.read(file, as_version=4)
    notebook.metadata.kernelspec = {"name": "conda-env-thesis-py", "display_name": "thesis", "language": "python"}
    nbformat.write(notebook, file)
    (fault,) = [one for one in preflight(course, "ch03") if "kernel" in one.what]
    assert not fault.serious and "saved with the kernel 'conda-env-thesis-py'" in fault.what
    assert "Change Kernel, Python 3" in fault.remedy


@pytest.fixture
def read_only(course: Path) -> Iterator[Path]:
    """A course folder that nobody may write in; only an ordinary user is held back by that."""
    file = student_file(course, CHAPTER)
    notebook = nbformat.read(file, as_version=4)
    next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "my_dropout").source = "x = 1"
    nbformat.write(notebook, file)
    paths = [course, *course.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(modes[path] & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield course
    for path in paths:
        path.chmod(modes[path])


def _as_ordinary_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autograder.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write in a read-only folder")
@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (
            ("start",),
            2,
            "start_here.ipynb cannot be written (Permission denied); open a chapter in notebooks/ by hand.",
        ),
        (("reset", "ch03"), 2, "cannot be written in (Permission denied); nothing was changed."),
        (("site", "--to", "{course}/site"), 2, "site cannot be written (Permission denied); name another folder"),
        (("doctor",), 1, "copy the course to a folder of your own"),
        (("check", "ch03"), 0, "0 of 3 exercises pass."),
        (("preflight", "ch03"), 0, "ch03 can be handed in."),
    ],
)
def test_in_a_read_only_folder_every_command_answers_in_words(
    read_only: Path, command: tuple[str, ...], code: int, sentence: str
) -> None:
    done = _as_ordinary_user(*(part.format(course=read_only) for part in command), "--root", str(read_only))
    assert done.returncode == code, done.stdout + done.stderr
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
