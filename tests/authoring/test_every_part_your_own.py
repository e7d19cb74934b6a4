"""Where a student's own answers work together: the end of chapter 6, and the capstone of chapter 9."""

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


CAPSTONE = "ch09_mastery"
BROUGHT = ("my_batchnorm", "my_dropout", "my_relu", "inspect_model", "export_round_trip")
OF_THE_CHAPTER = ("my_custom_layer", "clip_gradients", "extract_features")


def _capstone_cells(root: Path) -> list[str]:
    code = [cell.source for cell in read_source(source_file(root, CAPSTONE)).cells if cell.cell_type == "code"]
    start = next(number for number, source in enumerate(code) if source.startswith("greys, digits ="))
    end = next(number for number, source in enumerate(code) if "bit for bit" in source)
    return [code[0], *code[start : end + 1]]


def _run_capstone(root: Path, exercises: tuple[str, ...]) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    first, *cells = _capstone_cells(root)
    exec(first, namespace)
    for name in exercises:
        exercise = load_exercise(name)
        namespace.update(zip(exercise.parts, solution_parts(root, exercise), strict=True))
    for source in cells:
        exec(source, namespace)
    return namespace


def test_the_capstone_reaches_its_goal_with_nothing_but_the_students_parts(
    root: Path, capsys: pytest.CaptureFixture
) -> None:
    namespace = _run_capstone(root, OF_THE_CHAPTER + BROUGHT)
    used = {type(part).__name__ for part in namespace["model"].modules()}
    assert {"MyCustomLayer", "MyBatchNorm", "MyDropout", "MyReLU"} <= used
    said = capsys.readouterr().out
    assert "not here yet: none" in said and "stands in" not in said
    assert "parameters: 6890" in said and "sum of the column: 6890" in said and "no call: []" in said
    assert "under a minute: True" in said and "more than 93 of 100 right: True" in said
    assert said.count("same answers: True") == 2 and "bit for bit: True" in said


def test_the_capstone_runs_with_what_torch_lends(root: Path, capsys: pytest.CaptureFixture) -> None:
    def unwritten(*_: Any) -> None:
        raise NotImplementedError("extract_features")

    namespace = {"MyCustomLayer": unwritten, "clip_gradients": unwritten, "extract_features": unwritten}
    first, *cells = _capstone_cells(root)
    exec(first, namespace)
    for source in cells:
        exec(source, namespace)
    said = capsys.readouterr().out
    assert "Linear stands in for MyCustomLayer" in said and "ReLU stands in for MyReLU" in said
    assert "more than 93 of 100 right: True" in said and "bit for bit: True" in said
