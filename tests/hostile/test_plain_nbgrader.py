"""A chosen few through plain ``nbgrader autograde`` with the course's configuration: the same scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from tests.grading import classroom
from tests.grading.classroom import CHAPTER
from tests.hostile import (
    test_broken_files,
    test_endings,
    test_files_beside,
    test_forging,
    test_notebooks_changed,
    test_reaching_out,
    test_references,
    test_resources,
    test_torchs_own_layer,
)
from tests.hostile.case import LONGEST_RUN, Case, answered, new_course, short_notebook
from tests.hostile.classmates import CLASSMATES

_CHOSEN = {
    test_broken_files: ("cut_short", "windows_line_ends", "print_of_python_2"),
    test_endings: ("loop_in_python", "os_exit"),
    test_files_beside: ("an_own_module",),
    test_forging: ("check_replaced", "observe_all_replaced_by_hidden_names"),
    test_notebooks_changed: ("check_no_longer_graded", "check_deleted", "mark_that_is_a_list", "check_worth_a_hundred"),
    test_reaching_out: ("gradebook", "seed_in_the_environment"),
    test_references: ("from_the_registry",),
    test_resources: ("memory_bomb",),
    test_torchs_own_layer: ("a_subclass", "a_hidden_child"),
}
_LINKS = next(case for case in test_files_beside.CASES if case.name == "symbolic_links")
CASES = [
    *(case for module, names in _CHOSEN.items() for case in module.CASES if case.name in names),
    replace(_LINKS, beside=test_files_beside.links_to_elsewhere),
    # nbgrader copies what a link points at before anything of ours runs, and gives up on one that leads nowhere.
    replace(_LINKS, name="a_link_to_nowhere", scores=None, beside=lambda folder: (folder / "a").symlink_to("/no/such")),
]
HONEST = ("honest_ada", "honest_cleo", "honest_eva")
# The limits of the families, but for the seconds that the endless loop is given.
LIMITS = {"timeout": 8, "memory_megabytes": 900, "disk_megabytes": 32, "processes": 32}


@pytest.fixture(scope="module")
def autograded(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course after ``nbgrader autograde``."""
    course = new_course(released, tmp_path_factory.mktemp("plain") / "course", **LIMITS)
    blank = short_notebook(course)
    for case in CASES:
        case.hand_in(course, blank)
    for student in HONEST:
        classroom.write(course, student, nbformat.writes(answered(blank, CLASSMATES[student])))
    done = classroom.run(course, "nbgrader", "autograde", CHAPTER, seconds=LONGEST_RUN)
    (course / "said.txt").write_text(done.stdout + done.stderr)
    return course


@pytest.fixture(scope="module")
def scores(autograded: Path) -> dict[str, dict[str, float]]:
    """What the gradebook holds of those that nbgrader could read."""
    return classroom.scores(autograded, but=[case.name for case in CASES if case.scores is None])


def test_every_chosen_case_is_there() -> None:
    assert len(CASES) == 2 + sum(map(len, _CHOSEN.values()))


def test_nbgrader_gives_the_right_score(autograded: Path, scores: dict, case: Case) -> None:
    if case.scores is None:
        assert case.name not in scores and case.name in (autograded / "said.txt").read_text()
    else:
        assert scores[case.name] == case.scores, case.why


def test_honest_classmates_keep_their_scores(scores: dict, undisturbed: dict) -> None:
    assert {name: scores[name] for name in HONEST} == {name: undisturbed[name] for name in HONEST}


def test_what_a_link_points_at_is_not_copied(autograded: Path) -> None:
    folder = autograded / "autograded" / "symbolic_links" / CHAPTER
    assert not [path.name for path in folder.iterdir() if path.suffix != ".ipynb"]
