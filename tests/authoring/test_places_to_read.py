"""Where a report sends the reader: a section that it names between « and » is a heading of that chapter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.authoring.build import source_file
from autograder.authoring.source import read_source
from autograder.exercise import Misconception
from autograder.registry import exercise_names, load_misconceptions

PLACE = re.compile(r"(?:chapter (?P<chapter>\d), )?«(?P<heading>[^»]+)»")
ALL = [(name, entry) for name in exercise_names() for entry in load_misconceptions(name) if "«" in entry.read]


def _headings(root: Path, chapter: str) -> set[str]:
    text = "\n".join(cell.source for cell in read_source(source_file(root, chapter)).cells)
    found = re.findall(r"^(?:>\s*\*\*|#{2,4} )(.+?)(?:\*\*)?$", text, flags=re.MULTILINE)
    return {heading.strip() for heading in found}


@pytest.mark.parametrize(("name", "entry"), ALL, ids=[f"{name}-{entry.name}" for name, entry in ALL])
def test_the_section_named_exists(root: Path, name: str, entry: Misconception) -> None:
    folders = set(exercise_names().values())
    for place in PLACE.finditer(entry.read):
        own = exercise_names()[name]
        number = place["chapter"]
        chapter = next(folder for folder in folders if folder.startswith(f"ch0{number}_")) if number else own
        assert place["heading"] in _headings(root, chapter)
