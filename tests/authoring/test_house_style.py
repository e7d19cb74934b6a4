"""The house style that can be counted: short cells, a sentence before each, prose that carries the code."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import nbformat

from autograder.authoring.build import source_file, student_file
from autograder.authoring.source import read_source

LONGEST_CELL, MEDIAN_CELL = 25, 8
NETWORK = re.compile(r"\b(urllib|requests|httpx|hf_hub|torch\.hub|download)\b")


def _code_lines(source: str) -> int:
    return sum(1 for line in source.splitlines() if line.strip())


def test_code_cells_are_short(root: Path, chapter: str) -> None:
    cells = [cell for cell in read_source(source_file(root, chapter)).cells if cell.cell_type == "code"]
    lengths = {cell.source: _code_lines(cell.source) for cell in cells if "BEGIN SOLUTION" not in cell.source}
    assert [source for source, length in lengths.items() if length > LONGEST_CELL] == []
    assert statistics.median(lengths.values()) <= MEDIAN_CELL


def test_a_sentence_stands_before_every_code_cell(root: Path, chapter: str) -> None:
    cells = nbformat.read(student_file(root, chapter), as_version=4).cells
    lonely = [
        cell.source
        for before, cell in zip([None, *cells], cells, strict=False)
        if cell.cell_type == "code"
        and (before is None or before.cell_type != "markdown")
        # A check follows its answer, and the answer follows its card.
        and not cell.metadata.get("nbgrader", {}).get("grade")
    ]
    assert lonely == []


def test_prose_and_code_are_in_proportion(root: Path, chapter: str) -> None:
    cells = read_source(source_file(root, chapter)).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    lines = sum(_code_lines(cell.source) for cell in cells if cell.cell_type == "code")
    assert 6 <= words / lines <= 18


def test_nothing_reaches_for_the_network(root: Path, chapter: str) -> None:
    cells = read_source(source_file(root, chapter)).cells
    assert [cell.source for cell in cells if cell.cell_type == "code" and NETWORK.search(cell.source)] == []


def test_every_picture_has_alternative_text(root: Path, chapter: str) -> None:
    text = "\n".join(cell.source for cell in read_source(source_file(root, chapter)).cells)
    assert re.findall(r"!\[\s*\]\(", text) == []
    assert [tag for tag in re.findall(r"<img[^>]*>", text) if not re.search(r'alt="[^"]+"', tag)] == []
