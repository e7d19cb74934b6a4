"""SECURITY.md names the test that shows each promise: every one of them exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import tests.hostile
from autograder.grading.judge import checked_exercise, is_graded
from tests.hostile.case import Case

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FAMILIES = sorted(path.stem for path in Path(tests.hostile.__file__).parent.glob("test_*.py"))


def _names(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _cases(module: str) -> list[Case]:
    return getattr(importlib.import_module(f"tests.hostile.{module}"), "CASES", [])


def test_every_test_that_is_named_exists(root: Path) -> None:
    named = NAMED.findall((root / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for file, name in named:
        there = _names(root / file)
        if file.startswith("tests/hostile/test_"):
            there |= {case.name for case in _cases(Path(file).stem)}
        assert name in there, f"{file}::{name}"


def test_every_promise_names_a_test(root: Path) -> None:
    rows = [line for line in (root / "SECURITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [row for row in rows if not NAMED.search(row) and not row.startswith("| promise")] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_states_its_score_and_says_why(family: str) -> None:
    for case in _cases(family):
        assert case.why.endswith(".") and "\n" not in case.why
        assert case.scores is not None or case.says
        assert case.scores is None or set(case.scores) == {"my_batchnorm", "my_dropout", "save_and_resume"}


def test_no_name_stands_for_two_cases() -> None:
    for family in FAMILIES:
        names = [case.name for case in _cases(family)]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


def test_every_graded_cell_of_the_course_is_a_check(root: Path, chapter: str) -> None:
    """nbgrader's own rule, full marks for a cell that shows nothing, applies to no cell of the course."""
    import nbformat

    notebook = nbformat.read(root / "notebooks" / chapter / f"{chapter}.ipynb", as_version=4)
    assert [cell.source for cell in notebook.cells if is_graded(cell) and checked_exercise(cell) is None] == []
