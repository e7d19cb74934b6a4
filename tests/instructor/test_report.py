"""The class report of a class that was really graded: what it finds, what it says, and that it can be read."""

from __future__ import annotations

import csv
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from autograder.cli import main
from autograder.grading.course import load_course
from autograder.instructor.class_results import ClassResults, Item, Result, read_class
from autograder.instructor.item_analysis import analyse_items
from autograder.instructor.report import HEADER
from autograder.instructor.verdicts import Concern, Standing, exercise_verdicts, findings
from tests.grading.classroom import CHAPTER
from tests.instructor.class_of_sixty import MAKERS
from tests.instructor.conftest import HONEST, OVERRIDDEN, PLANTED, ROSTER
from tests.jupyterlab_server import chromium, needs_chromium


@pytest.fixture(scope="module")
def found(graded_class: Path) -> ClassResults:
    """What is known of the class."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(graded_class)
        return read_class(load_course(graded_class), CHAPTER)


@pytest.fixture(scope="module")
def written(graded_class: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """``ids`` and ``numbers`` -> the page; the same with `` table`` behind it -> the table."""
    texts = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(graded_class)
        for name, options in (("ids", []), ("numbers", ["--anonymous"])):
            target = tmp_path_factory.mktemp(name)
            assert main(["report", CHAPTER, "--root", str(graded_class), "--to", str(target), *options]) == 0
            texts[name] = (target / f"{CHAPTER}.html").read_text(encoding="utf-8")
            texts[f"{name} table"] = (target / f"{CHAPTER}.csv").read_text(encoding="utf-8-sig")
            assert {file.stat().st_mode & 0o777 for file in target.iterdir()} == {0o600}
    return texts


def test_who_is_graded_who_is_not_and_who_handed_in_nothing(found: ClassResults) -> None:
    assert {result.student for result in found.results} == {*HONEST, *PLANTED}
    assert found.not_graded == ["unreadable"] and found.nothing == ["absent"]
    assert [item.exercise for item in found.items] == list(MAKERS) and found.maximum == 11


def test_every_planted_submission_is_found_for_what_it_is(found: ClassResults) -> None:
    concerns = {(entry.concern, entry.student): entry for entry in findings(found)}
    assert concerns[Concern.CRASHED, "s036"].exercises == ("my_dropout", "save_and_resume")
    assert concerns[Concern.HANDED_OVER, "s012"].exercises == ("my_batchnorm", "my_dropout")
    assert concerns[Concern.HANDED_OVER, "s027"].exercises == ("my_dropout",)
    assert concerns[Concern.DID_NOT_RUN, "s014"].exercises == ("my_dropout",)
    assert concerns[Concern.FORGED, "s045"].exercises == ("save_and_resume",)
    assert not {student for _, student in concerns} & set(HONEST)


def test_standings_add_up_and_misconceptions_have_names(found: ClassResults) -> None:
    verdicts = {entry.item.exercise: entry for entry in exercise_verdicts(found)}
    for entry in verdicts.values():
        assert sum(entry.standings.values()) == len(found.results)
        assert sum(map(len, entry.misconceptions.values())) == entry.standings[Standing.KNOWN]
    assert {"s005", "s018"} <= set(verdicts["my_batchnorm"].misconceptions["biased_running_variance"])
    assert verdicts["save_and_resume"].standings[Standing.UNTOUCHED] >= 1


def test_an_override_is_what_counts(found: ClassResults) -> None:
    (result,) = (each for each in found.results if each.student == OVERRIDDEN)
    assert result.points["my_dropout_check"] == 1.5 and result.overridden == {"my_dropout_check"}


def test_what_was_handed_in_after_grading_needs_eyes(graded_class: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    shutil.copytree(graded_class, course)
    (course / "submitted" / "s001" / CHAPTER / f"{CHAPTER}.ipynb").touch()
    changed = [
        entry.student
        for entry in findings(read_class(load_course(course), CHAPTER))
        if entry.concern is Concern.CHANGED
    ]
    assert "s001" in changed and "s002" not in changed


def test_the_page_needs_nothing_else_and_names_nobody(written: dict[str, str]) -> None:
    for text in written.values():
        assert not re.search(r'(src|href|url)\s*[=(]\s*["\']?(https?:|//)', text)
        assert not any(name in text for last, first, address in ROSTER.values() for name in (last, first, address))
    assert "s036" in written["ids"] and "s036" in written["ids table"]
    for student in (*HONEST, *PLANTED, "unreadable", "absent"):
        assert student not in written["numbers"] and student not in written["numbers table"]


def test_the_pair_and_the_reasons_are_on_the_page(written: dict[str, str]) -> None:
    assert re.search(r"s005, s018</th><td>my_batchnorm", written["ids"])
    assert (
        "MyBatchNorm is torch&#39;s own BatchNorm1d" in written["ids"]
        and "Handed in and not graded: unreadable" in written["ids"]
    )
    assert "torch&#39;s own" not in written["numbers"]


class _Page(HTMLParser):
    """Collects ids and figures."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.figures: list[dict] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.figures += [found] if tag == "svg" else []


def test_figures_have_words_and_no_id_is_there_twice(written: dict[str, str]) -> None:
    page = _Page()
    page.feed(written["ids"])
    assert len(page.ids) == len(set(page.ids))
    assert len(page.figures) >= 4 and all(f["role"] == "img" and len(f["aria-label"]) > 40 for f in page.figures)
    assert not re.search(r"#0[1-5]0[1-5]0\d", written["ids"]), "a stand-in for a colour of the page was left"


def test_the_table_has_a_row_for_each_student_and_exercise(written: dict[str, str], found: ClassResults) -> None:
    rows = list(csv.DictReader(written["ids table"].splitlines()))
    assert list(rows[0]) == HEADER and len(rows) == 3 * len(found.results)
    (row,) = (row for row in rows if (row["student"], row["exercise"]) == ("s018", "my_batchnorm"))
    assert row["misconception"] == "biased_running_variance" and row["near_identical_to"] == "s005"


def _class(scores: list[list[float]]) -> ClassResults:
    cells = [f"item{number}" for number in range(len(scores[0]))]
    results = [Result(f"s{n}", dict(zip(cells, row, strict=True))) for n, row in enumerate(scores)]
    return ClassResults("chapter", [Item(cell, cell, 4.0) for cell in cells], results, [], [], {})


def test_difficulty_and_discrimination_are_the_textbooks() -> None:
    scores = np.random.default_rng(5).integers(0, 5, (30, 3)).astype(float)
    statistics = analyse_items(_class(scores.tolist()))
    for column, each in enumerate(statistics):
        rest = scores.sum(axis=1) - scores[:, column]
        assert each.difficulty == pytest.approx(scores[:, column].mean() / 4)
        assert each.discrimination == pytest.approx(np.corrcoef(scores[:, column], rest)[0, 1])
        assert each.interval[0] < each.discrimination < each.interval[1]
    (each, _) = analyse_items(_class([[1, 1], [2, 2], [3, 3], [4, 4]]))
    assert each.discrimination == pytest.approx(1)


@pytest.mark.parametrize(
    "scores", [[[1.0], [2.0], [3.0], [4.0]], [[1.0, 2.0], [2.0, 1.0]], [[4.0, n] for n in range(4)]]
)
def test_discrimination_that_is_not_defined_is_none(scores: list[list[float]]) -> None:
    assert analyse_items(_class(scores))[0].discrimination is None


def test_bad_input_is_one_sentence(graded_class: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    for arguments, said in (
        (["report", "ch99_none"], 'knows no assignment "ch99_none"'),
        (["report", CHAPTER, "--to", str(tmp_path / "file")], "cannot be written"),
        (["report", CHAPTER, "--root", str(tmp_path)], "holds no nbgrader_config.py"),
    ):
        assert main([*arguments, *([] if "--root" in arguments else ["--root", str(graded_class)])]) == 2
        error = capsys.readouterr().err.strip()
        assert said in error and "\n" not in error
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.browser
@needs_chromium
def test_in_a_browser_axe_finds_no_serious_fault_and_nothing_is_fetched(
    written: dict[str, str], tmp_path: Path
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    file = tmp_path / "report.html"
    file.write_text(written["ids"], encoding="utf-8")
    with chromium() as page:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(file.as_uri())
            violations = axe.Axe().run(page, options=rules).response["violations"]
            assert [(v["id"], v["nodes"][0]["html"][:160]) for v in violations] == [], scheme
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert page.seen == {"outside": [], "errors": []}
