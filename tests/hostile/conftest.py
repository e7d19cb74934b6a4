"""The class of each family, graded once for each file, and the figures over all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.figures import FIGURES
from tests.grading import classroom
from tests.hostile.case import LONGEST_RUN, GradedClass, grade_class, new_course
from tests.hostile.classmates import CLASSMATES


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
