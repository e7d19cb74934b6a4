"""Collecting from an exchange into which students put what they like: links, pipes, other names, too much."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeFactory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.instructor.collecting import CollectOwnFiles, TooLarge, copy_plain_files
from autograder.instructor.new_course import programs_on_path

CHAPTER = "ch03_buffers_and_state"
TIME = "2026-11-21 10:00:00 UTC"


class Exchange:
    """An exchange and a course beside it, both owned by whoever tests."""

    def __init__(self, place: Path) -> None:
        self.course, self.inbound = place / "course", place / "exchange" / "networks" / "inbound"
        self.course.mkdir()
        self.inbound.mkdir(parents=True)
        self.said: list[str] = []

    def hand_in(self, name: str, text: str = "the answer") -> Path:
        """Put a folder into the inbound one, with a notebook in it."""
        folder = self.inbound / name
        folder.mkdir()
        (folder / f"{CHAPTER}.ipynb").write_text(text)
        return folder

    def collect(self, **options: object) -> None:
        """Run the collector as ``nbgrader collect`` does, and keep its warnings."""
        config = Config()
        config.Exchange.root = str(self.inbound.parents[1])
        config.CollectOwnFiles = Config(options)
        config.CourseDirectory = Config(
            root=str(self.course),
            course_id="networks",
            assignment_id=CHAPTER,
            db_url=f"sqlite:///{self.course / 'gradebook.db'}",
            max_dir_size=1000,
        )
        collector = CollectOwnFiles(coursedir=CourseDirectory(config=config), config=config)
        for level in ("warning", "error"):
            setattr(collector.log, level, lambda text, *parts: self.said.append(text % parts if parts else text))
        with programs_on_path():
            collector.start()

    @property
    def collected(self) -> dict[str, str]:
        """Path below submitted/ -> its text."""
        place = self.course / "submitted"
        return {str(file.relative_to(place)): file.read_text() for file in sorted(place.rglob("*")) if file.is_file()}


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exchange]:
    made = Exchange(tmp_path)
    monkeypatch.chdir(made.course)
    log = CollectOwnFiles().log
    before = {level: getattr(log, level) for level in ("warning", "error")}
    yield made
    for level, method in before.items():
        setattr(log, level, method)


def test_it_is_what_the_course_collects_with(root: Path) -> None:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    assert ExchangeFactory(config=config).collect is CollectOwnFiles


def test_what_is_no_ordinary_file_is_left_out_by_name(exchange: Exchange) -> None:
    (exchange.course / "gradebook_copy").write_text("everybody's marks")
    folder = exchange.hand_in(f"ada+{CHAPTER}+{TIME}+x1")
    (folder / "marks.txt").symlink_to(exchange.course / "gradebook_copy")
    (folder / "everything").symlink_to("/")
    os.link(exchange.course / "gradebook_copy", folder / "hard.txt")
    os.mkfifo(folder / "pipe")
    (folder / "data").mkdir()
    (folder / "data" / "numbers.csv").write_text("1,2")
    exchange.collect()
    assert exchange.collected == {
        f"ada/{CHAPTER}/{CHAPTER}.ipynb": "the answer",
        f"ada/{CHAPTER}/data/numbers.csv": "1,2",
    }
    assert set(exchange.said) == {
        "ada: marks.txt is left out: it is a link.",
        "ada: everything is left out: it is a link.",
        "ada: hard.txt is left out: it has another name elsewhere.",
        "ada: pipe is left out: it is no ordinary file.",
    }
    assert not list(exchange.course.glob(".collecting-*"))


def test_a_notebook_that_links_to_the_solution_is_not_collected(exchange: Exchange) -> None:
    (exchange.course / "solution.ipynb").write_text("the solution")
    notebook = exchange.hand_in(f"ada+{CHAPTER}+{TIME}+x1") / f"{CHAPTER}.ipynb"
    notebook.unlink()
    notebook.symlink_to(exchange.course / "solution.ipynb")
    exchange.hand_in(f"ben+{CHAPTER}+{TIME}+x2")
    exchange.collect()
    assert exchange.collected == {f"ben/{CHAPTER}/{CHAPTER}.ipynb": "the answer"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (f"ada+{CHAPTER}+yesterday+x1", "its name holds no time that can be read"),
        (f"ada+{CHAPTER}+99999-13-45 99:99:99 UTC+x1", "its name holds no time that can be read"),
        (f"a\nda+{CHAPTER}+{TIME}+x1", "no student has such a name"),
    ],
)
def test_a_name_that_cannot_count_costs_nobody_else(exchange: Exchange, name: str, why: str) -> None:
    exchange.hand_in(name)
    exchange.hand_in(f"ben+{CHAPTER}+{TIME}+x2")
    exchange.collect()
    assert exchange.collected == {f"ben/{CHAPTER}/{CHAPTER}.ipynb": "the answer"}
    (said,) = exchange.said
    assert said.endswith(f"is left out: {why}.") and "\n" not in said


def test_a_folder_that_is_a_link_or_a_file_is_left_out(exchange: Exchange) -> None:
    (exchange.course / "source").mkdir()
    (exchange.course / "source" / f"{CHAPTER}.ipynb").write_text("the solution")
    (exchange.inbound / f"ada+{CHAPTER}+{TIME}+x1").symlink_to(exchange.course / "source")
    (exchange.inbound / f"ben+{CHAPTER}+{TIME}+x2").write_text("no folder")
    exchange.hand_in(f"cleo+{CHAPTER}+{TIME}+x3")
    exchange.collect()
    assert exchange.collected == {f"cleo/{CHAPTER}/{CHAPTER}.ipynb": "the answer"}
    assert [said.endswith("it is not a folder.") for said in exchange.said] == [True, True]


def test_too_much_is_not_collected_and_what_was_collected_stays(exchange: Exchange) -> None:
    exchange.hand_in(f"ada+{CHAPTER}+{TIME}+x1")
    exchange.hand_in(f"ben+{CHAPTER}+{TIME}+x2")
    exchange.collect()
    later = exchange.hand_in(f"ada+{CHAPTER}+2026-11-22 10:00:00 UTC+x3", "more")
    with (later / "zeros").open("wb") as file:
        file.truncate(1_000_001)
    exchange.hand_in(f"ben+{CHAPTER}+2026-11-22 10:00:00 UTC+x4", "better")
    exchange.collect(update=True)
    assert exchange.collected == {
        f"ada/{CHAPTER}/{CHAPTER}.ipynb": "the answer",
        f"ben/{CHAPTER}/{CHAPTER}.ipynb": "better",
    }
    assert len(exchange.said) == 1 and exchange.said[0].endswith("is not collected: it has more than 1 MB")


def test_too_many_files_and_too_deep_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.instructor.collecting._MOST_FILES", 20)
    monkeypatch.setattr("autograder.instructor.collecting._DEEPEST", 3)
    deep = tmp_path / "deep"
    (deep / "a" / "b" / "c" / "d" / "e").mkdir(parents=True)
    left = copy_plain_files(deep, tmp_path / "one", 100)
    assert left == [("a/b/c/d", "it lies more than 3 folders deep")] and (tmp_path / "one" / "a" / "b" / "c").is_dir()
    many = tmp_path / "many"
    many.mkdir()
    for number in range(21):
        (many / str(number)).touch()
    with pytest.raises(TooLarge, match="more than 20 files"):
        copy_plain_files(many, tmp_path / "two", 100)


def test_a_file_that_turns_into_a_link_meanwhile_is_never_followed(tmp_path: Path) -> None:
    """Somebody swaps a file and a link as fast as can be while it is copied, until the copies have met both."""
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.write_text("everybody's marks")
    folder.mkdir()
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for make in (lambda path: path.write_text("mine"), lambda path: path.symlink_to(secret)):
                make(folder / ".new")
                os.replace(folder / ".new", folder / "file")

    (folder / "file").write_text("mine")
    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    seen = set()
    try:
        for number in range(20_000):
            copy_plain_files(folder, tmp_path / str(number), 1000)
            copied = tmp_path / str(number) / "file"
            seen.add(copied.read_text() if copied.exists() else None)
            if number >= 300 and len(seen) > 1:
                break
    finally:
        over.set()
        thread.join()
    assert seen <= {"mine", "", None} and len(seen) > 1


def test_a_socket_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        assert copy_plain_files(folder, tmp_path / "copy", 10) == [("s", "it is no ordinary file")]
