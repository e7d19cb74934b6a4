"""Every fact filed under a chapter is taught under a heading that exists, or left out for a reason that is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from autograder.authoring.build import source_file
from autograder.authoring.source import read_source

# How many rows the fact ledger files under each chapter, and which corrections and advanced facts belong to it.
ROWS = {
    "ch00_why_internals": {*(f"0.{number}" for number in range(1, 25)), "C1", "C2"},
    "ch01_module_anatomy": {
        *(f"1.{number}" for number in range(1, 36)),
        *("C3", "C4", "C5", "C8"),
        *("A20", "A21"),
    },
    "ch02_parameter_registration": {
        *(f"2.{number}" for number in range(1, 30)),
        "9.2",
        *(f"9.{number}" for number in range(16, 22)),
        *("C6", "C7", "C9", "C29", "C34", "C45"),
        *("A8", "A9", "A10", "A16"),
    },
    "ch03_buffers_and_state": {
        *(f"3.{number}" for number in range(1, 43)),
        *(f"9.{number}" for number in range(23, 28)),
        *(f"C{number}" for number in range(10, 18)),
        "C43",
        *("A11", "A12", "A14", "A17", "A18", "A23"),
    },
    "ch04_hooks": {
        *(f"4.{number}" for number in range(1, 25)),
        *(f"C{number}" for number in range(18, 24)),
        *("A1", "A4", "A5", "A6", "A7"),
    },
    "ch05_call_protocol": {
        *(f"5.{number}" for number in range(1, 28)),
        *(f"C{number}" for number in range(24, 29)),
        *("A2", "A3", "A24"),
    },
    "ch06_containers": {
        *(f"6.{number}" for number in range(1, 26)),
        "9.22",
        *("C30", "C31", "C44"),
    },
    "ch07_model_inspector": {*(f"7.{number}" for number in range(1, 23)), "C32", "A22"},
    "ch08_jit_and_export": {
        *(f"8.{number}" for number in range(1, 27)),
        *(f"C{number}" for number in range(37, 43)),
        *("A18", "A19"),
    },
    "ch09_mastery": {
        "9.1",
        *(f"9.{number}" for number in range(3, 16)),
        *("9.28", "9.29"),
        *("C35", "C36"),
        "A15",
    },
}


def _ledger(root: Path, chapter: str) -> list[dict]:
    file = root / "autograder" / "authoring" / "ledger" / f"{chapter}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["row"]


def test_the_ledger_knows_every_row_once(root: Path, chapter: str) -> None:
    named = [row["id"] for row in _ledger(root, chapter)]
    assert len(named) == len(set(named))
    assert set(named) == ROWS[chapter]


def test_each_row_is_taught_or_left_out_on_purpose(root: Path, chapter: str) -> None:
    for row in _ledger(root, chapter):
        assert ("taught" in row) != ("left_out" in row), f"{row['id']}: either taught or left_out"
        if "left_out" in row:
            assert len(row["left_out"].split()) >= 4, f"{row['id']}: the reason is too short to be one"


def test_each_heading_that_the_ledger_names_exists(root: Path, chapter: str) -> None:
    cells = read_source(source_file(root, chapter)).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    headings = {match.strip() for match in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)}
    missing = {row["id"]: row["taught"] for row in _ledger(root, chapter) if "taught" in row}
    assert {key: name for key, name in missing.items() if name.lstrip("# ").strip() not in headings} == {}


def test_every_chapter_with_a_source_has_its_rows_listed(chapter: str) -> None:
    if chapter not in ROWS:
        pytest.fail(f"list the ledger rows of {chapter} in this test")
