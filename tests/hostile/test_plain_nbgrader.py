"""The corpus through plain ``nbgrader autograde`` with the course's configuration: the same scores.

A chosen few of every family in ``make test``; all of them in ``make hostile``, which sets HOSTILE_PLAIN=every.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

from tests.grading import classroom
from tests.grading.classroom import CHAPTER
from tests.hostile import (
    test_broken_files,
    test_endings,
    test_files_beside,
    test_forging,
    test_judges_messages,
    test_known_limits,
    test_notebooks_changed,
    test_reaching_out,
    test_references,
    test_resources,
    test_torchs_own_layer,
)
from tests.hostile.case import LONGEST_RUN, Case, answered, new_course, short_notebook
from tests.hostile.classmates import CLASSMATES

# What `make test` takes of each family.
_CHOSEN = {
    test_broken_files: ("cut_short", "windows_line_ends", "print_of_python_2"),
    test_endings: ("loop_in_python", "os_exit"),
    test_files_beside: ("an_own_module",),
    test_forging: ("check_replaced", "observe_all_replaced_by_hidden_names"),
    test_judges_messages: (),
    test_known_limits: (),
    test_notebooks_changed: ("check_no_longer_graded", "check_deleted", "mark_that_is_a_list", "check_worth_a_hundred"),
    test_reaching_out: ("gradebook", "seed_in_the_environment"),
    test_references: ("from_the_registry",),
    test_resources: ("memory_bomb",),
    test_torchs_own_layer: ("a_subclass", "a_hidden_child"),
}
_EVERY = os.environ.get("HOSTILE_PLAIN") == "every"
_LINKS = next(case for case in test_files_beside.CASES if case.name == "symbolic_links")
# nbgrader copies what a link points at before anything of ours runs, and gives up on one that leads nowhere.
_OWN = (
    replace(_LINKS, beside=test_files_beside.links_to_elsewhere),
    replace(_LINKS, name="a_link_to_nowhere", scores=None, beside=lambda folder: (folder / "a").symlink_to("/no/such")),
)
# What nbgrader makes of these before any step of ours: it names the student, and there is no score.
_GIVES_UP_ON = {
    (test_broken_files, "byte_order_mark"): "It reads UTF-8 without a mark.",
    (test_broken_files, "half_a_character"): "It reads UTF-8 and nothing else.",
    (test_files_beside, "a_time_in_a_far_year"): "It reads timestamp.txt or nothing.",
    (test_files_beside, "a_time_of_its_own"): "It reads timestamp.txt or nothing.",
    (test_files_beside, "pipes_and_sockets"): "It copies whatever lies there.",
}
# It waits for a writer; collecting from the exchange leaves such a thing out.
_WAITS_FOR = ("the_notebook_is_a_pipe",)
HONEST = ("honest_ada", "honest_cleo", "honest_eva")


@dataclass(frozen=True)
class Family:
    """Submissions that are graded in one run, and the limits that they need."""

    name: str
    cases: Sequence[Case]
    limits: Mapping[str, float]


def _families() -> list[Family]:
    if not _EVERY:
        cases = [case for module, names in _CHOSEN.items() for case in module.CASES if case.name in names]
        # The limits of the families, but for the seconds that the endless loop is given.
        limits = {"timeout": 8, "memory_megabytes": 900, "disk_megabytes": 32, "processes": 32}
        return [Family("chosen", [*cases, *_OWN], limits)]
    return [_family(module) for module in _CHOSEN]


def _family(module: ModuleType) -> Family:
    cases = []
    for case in module.CASES:
        if case is not _LINKS and case.name not in _WAITS_FOR:
            why = _GIVES_UP_ON.get((module, case.name))
            cases.append(case if why is None else replace(case, scores=None, why=why))
    if module is test_files_beside:
        cases += _OWN
    return Family(module.__name__.rpartition(".")[2].removeprefix("test_"), cases, module.LIMITS)


FAMILIES = _families()
EACH = [pytest.param(family, case, id=f"{family.name}-{case.name}") for family in FAMILIES for case in family.cases]


@dataclass(frozen=True)
class Graded:
    """A course after ``nbgrader autograde``, what that said, and what the gradebook holds of those it could read."""

    course: Path
    said: str
    scores: Mapping[str, Mapping[str, float]]


@pytest.fixture(scope="module")
def graded_families() -> dict[str, Graded]:
    """What has been graded so far."""
    return {}


@pytest.fixture
def autograded(
    family: Family, graded_families: dict[str, Graded], released: Path, tmp_path_factory: pytest.TempPathFactory
) -> Graded:
    """The family's class, graded once."""
    if family.name not in graded_families:
        course = new_course(released, tmp_path_factory.mktemp("plain") / "course", **family.limits)
        graded_families[family.name] = _grade(course, family.cases)
    return graded_families[family.name]


def _grade(course: Path, cases: Sequence[Case]) -> Graded:
    blank = short_notebook(course)
    for case in cases:
        case.hand_in(course, blank)
    for student in HONEST:
        classroom.write(course, student, nbformat.writes(answered(blank, CLASSMATES[student])))
    done = classroom.run(course, "nbgrader", "autograde", CHAPTER, seconds=LONGEST_RUN)
    return Graded(course, done.stdout + done.stderr, classroom.scores(course, but_unread=True))


def test_every_chosen_case_is_there() -> None:
    there = {case.name for family in FAMILIES for case in family.cases}
    assert there >= {name for names in _CHOSEN.values() for name in names} | {case.name for case in _OWN}
    assert len(EACH) == len({each.id for each in EACH})
    assert all(name in {case.name for case in module.CASES} for module, name in _GIVES_UP_ON)


@pytest.mark.parametrize(("family", "case"), EACH)
def test_nbgrader_gives_the_right_score(family: Family, case: Case, autograded: Graded) -> None:
    if case.scores is None:
        assert case.name not in autograded.scores and case.name in autograded.said
    else:
        assert autograded.scores[case.name] == case.scores, case.why


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_honest_classmates_keep_their_scores(family: Family, autograded: Graded, undisturbed: dict) -> None:
    assert {name: autograded.scores[name] for name in HONEST} == {name: undisturbed[name] for name in HONEST}


@pytest.mark.parametrize("family", [family for family in FAMILIES if _OWN[0] in family.cases], ids=["links"])
def test_what_a_link_points_at_is_not_copied(family: Family, autograded: Graded) -> None:
    folder = autograded.course / "autograded" / "symbolic_links" / CHAPTER
    assert not [path.name for path in folder.iterdir() if path.suffix != ".ipynb"]
