"""The end of chapter 6: the student's own layers train in the student's own container, and torch loads the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from autograder.authoring.build import solution_parts, source_file
from autograder.authoring.source import read_source
from autograder.registry import exercise_names, load_exercise

CHAPTER = "ch06_containers"
EARLIER = {"MyLinear": "my_linear", "MyDropout": "my_dropout"}
FIRST_CLOSING_LINE = "# Paste MyLinear"


def _closing_cells(root: Path) -> list[str]:
    code = [cell.source for cell in read_source(source_file(root, CHAPTER)).cells if cell.cell_type == "code"]
    start = next(number for number, source in enumerate(code) if source.startswith(FIRST_CLOSING_LINE))
    return code[start : start + 4]


def _own_parts(root: Path) -> dict[str, Any]:
    parts: dict[str, Any] = {"torch": torch, "nn": nn}
    for name in ("my_relu", "my_sequential"):
        exercise = load_exercise(name)
        parts.update(zip(exercise.parts, solution_parts(root, exercise), strict=True))
    return parts


def test_the_students_own_layers_train_in_their_own_container(root: Path, capsys: pytest.CaptureFixture) -> None:
    namespace = _own_parts(root)
    for name, exercise in EARLIER.items():
        if exercise in exercise_names():
            (namespace[name],) = solution_parts(root, load_exercise(exercise))
    for source in _closing_cells(root):
        exec(source, namespace)
    used = {type(part).__name__ for part in namespace["mine"].modules()}
    assert {"MySequential", "MyReLU"} <= used
    assert {name for name, exercise in EARLIER.items() if exercise in exercise_names()} <= used
    said = capsys.readouterr().out
    assert "loss fell below a tenth: True" in said and "same answers: True" in said


def test_what_is_still_to_be_written_is_named(root: Path, capsys: pytest.CaptureFixture) -> None:
    class MyReLU(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise NotImplementedError("my_relu")

    namespace = _own_parts(root) | {"MyReLU": MyReLU}
    for source in _closing_cells(root):
        exec(source, namespace)
    assert "still to be written: my_relu" in capsys.readouterr().out
