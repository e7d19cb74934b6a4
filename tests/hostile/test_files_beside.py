"""What lies beside the notebook: links, strange names, too much, and files that stand in for modules."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tests.grading.classroom import CHAPTER
from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 96}
_SECRET = "of the gradebook"


def _course(folder: Path) -> Path:
    return folder.parent.parent.parent


def _first(code: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.insert(1, new_code_cell(code))


def _with(name: str, why: str, beside: Callable[[Path], Any], code: str = "", **more: Any) -> Case:
    return Case(name, why, scored(), beside=beside, change=_first(code) if code else None, **more)


def _text(name: str, text: str = "x = 1\n") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


def _bytes_name(folder: Path) -> None:
    for name in (
        b"caf\xe9.txt",
        b"new\nline.txt",
        b"..hidden",
        b"...",
        b"-rf",
        b"$(touch hacked)",
        b"a\x1b[2Jb",
        b"\xff" * 200,
    ):
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_text("x")


def _secret(course: Path) -> Path:
    file = course / "secret.txt"
    file.write_text(_SECRET)
    return file


def links_to_elsewhere(folder: Path) -> None:
    """Put links beside the notebook to what only the instructor may read."""
    course = _course(folder)
    (folder / "gradebook_link.txt").symlink_to(course / "gradebook.db")
    (folder / "secret_link.txt").symlink_to(_secret(course))
    (folder / "everything").symlink_to("/")


def _links(folder: Path) -> None:
    links_to_elsewhere(folder)
    (folder / "loop").symlink_to("loop")
    (folder / "nowhere").symlink_to("/no/such/place")


def _hard_links(folder: Path) -> None:
    os.link(_secret(_course(folder)), folder / "secret_hard.txt")
    os.link(_course(folder) / "gradebook.db", folder / "grades.txt")


def _special_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    import socket

    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()
        os.chdir(folder)
        try:
            made.bind("listening")
        finally:
            os.chdir(before)


def _notebook_elsewhere(folder: Path) -> None:
    file = folder / f"{CHAPTER}.ipynb"
    file.rename(_course(folder) / "elsewhere.ipynb")
    file.symlink_to(_course(folder) / "elsewhere.ipynb")


def _notebook_is_a_folder(folder: Path) -> None:
    (folder / f"{CHAPTER}.ipynb").unlink()
    (folder / f"{CHAPTER}.ipynb").mkdir()


def _notebook_is_a_pipe(folder: Path) -> None:
    (folder / f"{CHAPTER}.ipynb").unlink()
    os.mkfifo(folder / f"{CHAPTER}.ipynb")


def _deep(folder: Path) -> None:
    for _ in range(60):
        folder = folder / "deep"
    folder.mkdir(parents=True)
    (folder / "file.txt").write_text("x")


def _many(folder: Path) -> None:
    for number in range(1100):
        (folder / f"f{number}.txt").write_text("x")


def _much(folder: Path) -> None:
    with (folder / "big.bin").open("wb") as file:
        file.truncate(65 << 20)


_MODULES = (
    "torch",
    "autograder",
    "json",
    "random",
    "numpy",
    "IPython",
    "safetensors",
    "base64",
    "sitecustomize",
    "typing",
)


def _modules(folder: Path) -> None:
    for name in _MODULES:
        (folder / f"{name}.py").write_text("raise RuntimeError('the wrong module')\n")
    for name in ("safetensors", "autograder"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("check = lambda *parts: 3.0\n")
    (folder / ".ipython" / "profile_default" / "startup").mkdir(parents=True)
    (folder / ".ipython" / "profile_default" / "startup" / "00.py").write_text("raise SystemExit\n")
    (folder / "ipython_config.py").write_text("raise SystemExit\n")
    (folder / "usercustomize.py").write_text("raise SystemExit\n")


CASES = [
    _with(
        "an_own_module",
        "A student's own utils.py travels with the notebook.",
        _text("utils.py", "def twice(x):\n    return 2 * x\n"),
        "import utils\nprint('twice', utils.twice(21))",
        says="twice 42",
    ),
    _with(
        "own_data_in_a_folder",
        "So does a folder with data.",
        _text("data/numbers.csv", "1,2\n"),
        "print('read', open('data/numbers.csv').read())",
        says="read 1,2",
    ),
    _with(
        "names_of_strange_bytes",
        "A name may be any bytes; the file travels all the same.",
        _bytes_name,
        "import os\nprint('names', len(os.listdir(b'.')) >= 8, b'caf\\xe9.txt' in os.listdir(b'.'))",
        says="names True True",
    ),
    _with(
        "symbolic_links",
        "A link could point at anything that the instructor may read: it is left out.",
        _links,
        "import os\nprint('listed', [n for n in os.listdir('.') if n[0] != '.'])",
        says="listed []",
    ),
    _with(
        "hard_links",
        "The same for a file that has another name elsewhere.",
        _hard_links,
        "import os\nprint('listed', [n for n in os.listdir('.') if n[0] != '.'])",
        says="listed []",
    ),
    _with("pipes_and_sockets", "What is no file is left out, and nobody waits for it.", _special_files),
    _with("a_tower_of_folders", "Depth is no matter.", _deep),
    _with(
        "modules_that_stand_in",
        "What a check needs was loaded before.",
        _modules,
        "import json, random, torch\nprint('loaded', torch.ones(2).sum().item())",
        says="loaded 2.0",
    ),
    _with(
        "a_time_of_its_own", "A time that cannot be read is none.", _text("timestamp.txt", "'; DROP TABLE grade; --")
    ),
    _with("a_time_in_a_far_year", "The same.", _text("timestamp.txt", "99999-13-45 99:99:99 Mars")),
    _with("a_seed_of_its_own_beside", "The course's seed lies elsewhere.", _text("grading_seed.txt", "1")),
    _with("a_gradebook_of_its_own", "The course's gradebook lies elsewhere.", _text("gradebook.db", "not a database")),
    _with(
        "a_configuration_of_its_own", "nbgrader reads the course's.", _text("nbgrader_config.py", "raise SystemExit")
    ),
    _with(
        "two_notebooks",
        "The one with the right name counts.",
        lambda folder: (folder / "copy of mine.ipynb").write_text("{}"),
    ),
    _with(
        "a_notebook_with_a_line_in_its_name",
        "Others are not looked at.",
        lambda folder: (folder / "a\nb.ipynb").write_text("{}"),
    ),
    Case(
        "a_thousand_files",
        "More than a thousand files are not taken.",
        None,
        beside=_many,
        says="brings more than 1000 files",
    ),
    Case("a_file_of_65_megabytes", "More than 64 MB are not taken.", None, beside=_much, says="more than 64 MB"),
    Case(
        "the_notebook_is_a_link",
        "A link could point at anything that the instructor may read.",
        None,
        beside=_notebook_elsewhere,
        says="is not an ordinary file",
    ),
    Case(
        "the_notebook_is_a_folder",
        "There is no notebook.",
        None,
        beside=_notebook_is_a_folder,
        says="is not an ordinary file",
    ),
    Case(
        "the_notebook_is_a_pipe",
        "Nobody waits for it.",
        None,
        beside=_notebook_is_a_pipe,
        says="is not an ordinary file",
    ),
    Case(
        "a_renamed_notebook",
        "It has to have its name; what is there is said.",
        None,
        beside=lambda folder: (folder / f"{CHAPTER}.ipynb").rename(folder / "ch03 (1).ipynb"),
        says="there is ch03 (1).ipynb",
    ),
    Case(
        "an_empty_folder",
        "There is no notebook.",
        None,
        beside=lambda folder: (folder / f"{CHAPTER}.ipynb").unlink(),
        says=f"holds no {CHAPTER}.ipynb",
    ),
]


class TestFilesBeside(Family):
    """What is theirs travels, and nothing else comes along."""

    def test_nothing_of_the_course_came_along(self, graded: GradedClass) -> None:
        """No copy of what a link pointed at lies in what is handed back."""
        for file in (graded.course / "autograded").rglob("*"):
            assert not file.is_symlink()
            if file.is_file() and file.suffix != ".ipynb":
                data = file.read_bytes()
                assert _SECRET.encode() not in data and b"SQLite format 3" not in data

    def test_the_links_are_named(self, graded: GradedClass) -> None:
        """Whoever grades is told what was left out."""
        said = " ".join(graded.notes)
        assert "symbolic_links: what is a link to elsewhere was left out" in said
        assert "hard_links: what is a link to elsewhere was left out" in said
