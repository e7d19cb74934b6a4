"""The class of each family, graded once for each file, and the figures over all of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.grading import classroom
from tests.hostile.case import LONGEST_RUN, Case, GradedClass, grade_class, new_course
from tests.hostile.classmates import CLASSMATES


@dataclass
class Figures:
    """What the whole corpus came to."""

    cases: int = 0
    changed: int = 0
    lost: int = 0
    forged: float = 0.0

    def add(self, cases: Sequence[Case], graded: GradedClass, undisturbed: dict[str, dict[str, float]]) -> None:
        """Count one family."""
        self.cases += len(cases)
        self.changed += sum(graded.scores.get(name) != scores for name, scores in undisturbed.items())
        reported = {outcome["student"] for outcome in graded.outcomes if outcome["sentence"]}
        for case in cases:
            given = graded.scores.get(case.name)
            self.lost += given is None and (case.scores is not None or case.name not in reported)
            for exercise, points in (given or {}).items():
                self.forged += max(0.0, points - (case.scores or {}).get(exercise, 0.0))


FIGURES = Figures()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures, where families were graded in this process."""
    if FIGURES.cases:
        terminalreporter.write_line(
            f"hostile and broken submissions: {FIGURES.cases} cases, {FIGURES.changed} classmates' scores changed, "
            f"{FIGURES.lost} submissions lost, {FIGURES.forged:g} points forged"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for ``case`` once for each of its file's cases."""
    if "case" in metafunc.fixturenames and hasattr(metafunc.module, "CASES"):
        cases = metafunc.module.CASES
        metafunc.parametrize("case", cases, ids=[case.name for case in cases])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test of a file the time that grading a whole class may take on a busy machine."""
    for item in items:
        if "tests/hostile" in item.path.as_posix() and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_RUN))


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course whose chapter has been released, with nobody's submission in it."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the sandbox is made of Linux's parts")
    return classroom.make_course(root, tmp_path_factory.mktemp("released") / "course")


@pytest.fixture(scope="session")
def undisturbed(released: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """The scores of the nine classmates when nobody else is there."""
    course = new_course(released, tmp_path_factory.mktemp("undisturbed") / "course")
    graded = grade_class(course, [])
    assert graded.exit_code == 0, graded.said
    assert set(graded.scores) == set(CLASSMATES)
    return graded.scores


@pytest.fixture(scope="module")
def graded(
    request: pytest.FixtureRequest, released: Path, undisturbed: dict, tmp_path_factory: pytest.TempPathFactory
) -> GradedClass:
    """The class of the asking file: its cases and the nine, graded in one run."""
    course = new_course(released, tmp_path_factory.mktemp("family") / "course", **request.module.LIMITS)
    found = grade_class(course, request.module.CASES)
    FIGURES.add(request.module.CASES, found, undisturbed)
    return found
