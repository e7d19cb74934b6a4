"""The progress file: kept when it can be, and no trouble to anybody when it cannot."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.lesson import progress


def test_an_entry_is_one_line_of_json(progress_file: Path) -> None:
    assert progress.record("quiz", "ch03-persistent", {"option": 2, "right": True})
    (line,) = progress_file.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert (entry["kind"], entry["id"], entry["value"]) == (
        "quiz",
        "ch03-persistent",
        {"option": 2, "right": True},
    )
    assert entry["time"].endswith("+00:00")


def test_the_first_answer_stays_the_first() -> None:
    progress.record("quiz", "ch03-a", {"option": 1, "right": False})
    progress.record("quiz", "ch03-a", {"option": 2, "right": True})
    progress.record("prediction", "ch03-b", {"option": 3, "right": True})
    progress.record("check", "my_batchnorm", {"passed": True, "score": 1.0})
    assert progress.first_answers() == {
        "ch03-a": {"option": 1, "right": False},
        "ch03-b": {"option": 3, "right": True},
    }


def test_an_exercise_counts_once_it_has_passed() -> None:
    progress.record("check", "my_dropout", {"passed": False, "score": 0.5})
    progress.record("check", "my_batchnorm", {"passed": True, "score": 1.0})
    progress.record("check", "my_dropout", {"passed": True, "score": 1.0})
    progress.record("check", "my_batchnorm", {"passed": False, "score": 0.1})
    assert progress.exercises_passed() == ["my_batchnorm", "my_dropout"]


def test_without_a_file_nothing_is_known() -> None:
    assert progress.entries() == []
    assert progress.first_answers() == {}
    assert progress.exercises_passed() == []


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b"\xff\xfe\x00\n",
        b"\n\n",
        b"[1, 2]\n",
        b'{"time": "t", "kind": "quiz", "id": 7, "value": {}}\n',
        b'{"kind": "quiz", "id": "ch03-x"}\n',
        b"[" * 100_000 + b"\n",
        b'{"time": "2026-01-01T00:00:00+00:00", "kind": "quiz", "id": "ch03-cut", "val',
    ],
)
def test_damaged_lines_are_skipped_and_spoil_no_other(progress_file: Path, damage: bytes) -> None:
    progress.record("quiz", "ch03-before", {"option": 1, "right": True})
    with progress_file.open("ab") as file:
        file.write(damage)
    assert progress.record("quiz", "ch03-after", {"option": 1, "right": False})
    assert list(progress.first_answers()) == ["ch03-before", "ch03-after"]


@pytest.mark.parametrize("value", [None, 3, "right", {"right": "yes"}, {}, []])
def test_values_of_another_shape_are_no_answers(value: object) -> None:
    assert progress.record("quiz", "ch03-odd", value)
    assert progress.record("check", "odd", value)
    assert len(progress.entries()) == 2
    assert progress.first_answers() == {}
    assert progress.exercises_passed() == []


def test_anything_can_be_handed_in_as_a_value() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert progress.record("quiz", "ch03-odd", {"what": object()})
    assert not progress.record("quiz", "ch03-loop", loop)
    assert progress.record("quiz", "ch03-half \ud800", {"option": 1, "right": True})
    assert len(progress.entries()) == 2


def test_two_processes_that_write_at_once_lose_nothing(progress_file: Path) -> None:
    count = 300
    script = (
        "import sys; from autograder.lesson.progress import record\n"
        "sys.stdin.readline()\n"
        f"for number in range({count}): assert record('quiz', f'{{sys.argv[1]}}-{{number}}', 'x' * 3000)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, name], stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    expected = {f"{name}-{number}" for name in ("one", "two") for number in range(count)}
    assert {entry["id"] for entry in progress.entries()} == expected
    assert len(progress.entries()) == 2 * count
    # Each writer's entries keep their order.
    mine = [entry["id"] for entry in progress.entries() if entry["id"].startswith("one")]
    assert mine == [f"one-{number}" for number in range(count)]


def nowhere(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("not a folder")
    return tmp_path / "file" / "progress.jsonl"


def a_folder(tmp_path: Path) -> Path:
    return tmp_path


def a_pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def a_device(tmp_path: Path) -> Path:
    return Path("/dev/full")


def an_impossible_name(tmp_path: Path) -> Path:
    return tmp_path / ("long" * 200)


@pytest.mark.skipif(os.name == "nt", reason="pipes and devices as files are a matter of POSIX")
@pytest.mark.parametrize("place", [nowhere, a_folder, a_pipe, a_device, an_impossible_name])
def test_a_place_that_cannot_hold_a_file_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], place
) -> None:
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(place(tmp_path)))
    assert progress.record("quiz", "ch03-a", {"option": 1, "right": True}) is False
    assert progress.entries() == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write to a read-only folder")
def test_a_read_only_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(folder / "progress.jsonl"))
    assert progress.record("quiz", "ch03-a", {"option": 1, "right": True}) is False
    assert progress.entries() == []


def test_a_refused_file_changes_nothing(progress_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record("quiz", "ch03-a", {"option": 1, "right": True})

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "refused")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert progress.record("quiz", "ch03-b", {"option": 1, "right": True}) is False
    assert progress.entries() == []


def test_a_full_disk_loses_the_entry_and_nothing_else(progress_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record("quiz", "ch03-a", {"option": 1, "right": True})
    write = os.write

    def cut_short(descriptor: int, line: bytes) -> int:
        return write(descriptor, line[:20])

    with monkeypatch.context() as full:
        full.setattr(os, "write", cut_short)
        assert progress.record("quiz", "ch03-b", {"option": 1, "right": True}) is False
    assert progress.record("quiz", "ch03-c", {"option": 1, "right": True})
    assert list(progress.first_answers()) == ["ch03-a", "ch03-c"]


@pytest.mark.parametrize("variable", progress.GRADING_VARIABLES)
def test_a_grader_leaves_no_progress_and_sees_none(
    progress_file: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    progress.record("quiz", "ch03-a", {"option": 1, "right": False})
    before = progress_file.read_bytes()
    monkeypatch.setenv(variable, "secret")
    assert progress.record("quiz", "ch03-b", {"option": 1, "right": False})
    assert progress_file.read_bytes() == before
    assert progress.first_answers() == {}


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(progress.PROGRESS_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ours = Path("deep-framework-mechanics") / "progress.jsonl"
    assert progress.location() == tmp_path / ours
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert progress.location() == tmp_path / "home" / ".local" / "share" / ours
    monkeypatch.delenv("XDG_DATA_HOME")
    assert progress.location() == tmp_path / "home" / ".local" / "share" / ours
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, "~/mine.jsonl")
    assert progress.location() == tmp_path / "home" / "mine.jsonl"
