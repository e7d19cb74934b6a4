"""What a student sees of the whole course: the start page, the progress line, the doctor."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.lesson import progress
from autograder.messages import UsageError
from autograder.registry import exercise_names
from autograder.student import doctor
from autograder.student.overview import course as chapters_of
from autograder.student.overview import progress_line
from autograder.student.start_page import write_start_page


def _page(folder: Path) -> str:
    notebook = nbformat.read(write_start_page(folder), as_version=4)
    nbformat.validate(notebook)
    return "\n".join(cell.source for cell in notebook.cells)


def test_the_start_page_lists_every_chapter_with_minutes_and_working_links(course: Path) -> None:
    page = _page(course)
    links = re.findall(r"\]\((ch\d\d_[^)]+\.ipynb)\)", page)
    assert set(links) == {f"{path.name}/{path.name}.ipynb" for path in (course / "notebooks").glob("ch*")}
    assert all((course / "notebooks" / link).is_file() for link in links)
    for chapter in chapters_of(course):
        assert chapter.title.startswith("Chapter ") and 30 <= chapter.minutes <= 400
    assert "Begin with [Chapter 0" in page


def test_what_is_solved_is_marked_and_the_next_is_named(course: Path) -> None:
    first, second = chapters_of(course)[:2]
    for name in first.exercises:
        progress.record("check", name, {"passed": True, "score": 1.0})
    progress.record("check", second.exercises[0], {"passed": True, "score": 1.0})
    progress.record("check", second.exercises[1], {"passed": False, "score": 0.5})
    page = _page(course)
    assert f"| ✓ done | [{first.title}]" in page and f"| → next | [{second.title}]" in page
    assert f"✓ `{second.exercises[0]}`" in page and f"✓ `{second.exercises[1]}`" not in page
    assert f"There `{second.exercises[1]}` is waiting." in page


def test_a_damaged_notebook_or_progress_file_spoils_nothing(course: Path) -> None:
    (course / "notebooks" / "ch00_why_internals" / "ch00_why_internals.ipynb").write_text("{", encoding="utf-8")
    progress.location().write_bytes(b"\xff\x00{not json\n[]\n")
    assert "ch00_why_internals" in _page(course)


def test_a_folder_without_chapters_or_rights_is_named(tmp_path: Path, course: Path, monkeypatch) -> None:
    with pytest.raises(UsageError, match="holds no chapter"):
        write_start_page(tmp_path / "elsewhere")

    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("autograder.student.start_page.os.replace", refuse)
    with pytest.raises(UsageError, match="cannot be written .Permission denied.; open a chapter in notebooks/ by hand"):
        write_start_page(course)


def test_the_progress_line_counts_and_names_the_next(course: Path) -> None:
    names = [name for name, chapter in exercise_names().items() if chapter == "ch03_buffers_and_state"]
    progress.record("check", names[0], {"passed": True, "score": 1.0})
    assert progress_line(names[0]) == f"ch03: 1 of 3 solved, next: {names[1]}"
    for name in names:
        progress.record("check", name, {"passed": True, "score": 1.0})
    assert progress_line(names[0]).startswith("ch03: all 3 solved")


def test_the_doctor_finds_this_environment_well(course: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["doctor", "--root", str(course)]) == 0
    said = capsys.readouterr().out
    assert "✗" not in said and "torch 2.13" in said and len(said.splitlines()) <= 16


def test_the_doctor_names_what_is_wrong_and_the_remedy(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TORCH", "9.9")
    monkeypatch.setattr(doctor, "NEEDED", ("jupyterlab", "no_such_package"))
    text, well = doctor.screen(course)
    assert not well and "This course explains torch 9.9, and here is torch 2.13" in text
    assert "✗ not installed: no_such_package" in text and text.endswith(
        "Mend what is marked ✗ and run `make doctor` again."
    )


def test_another_torch_is_one_sentence_at_the_first_import(monkeypatch: pytest.MonkeyPatch) -> None:
    import autograder

    autograder._ask_for_torch.cache_clear()  # An earlier test may have asked.
    monkeypatch.setattr(doctor, "TORCH", "9.9")
    with pytest.raises(UsageError, match="explains torch 9.9"):
        autograder.__getattr__("check")


def test_a_command_outside_the_course_says_where_to_run_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["check", "--root", str(tmp_path)]) == 2
    assert "holds no folder notebooks/" in capsys.readouterr().err
