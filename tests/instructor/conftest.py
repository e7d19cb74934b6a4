"""One graded class for the report and the exports: a part of the sixty, with names that no file format likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from tests.grading import classroom
from tests.instructor.class_of_sixty import MAKERS, class_of

HONEST = ("s001", "s002", "s003", "s004", "s010", "s015")
PLANTED = ("s005", "s018", "s012", "s027", "s036", "s045", "s014")
ROSTER = {
    "s001": ("Lovelace, Countess", 'Ada "Augusta"', "ada@example.org"),
    "s002": ("Gödel", "Kurt\nFriedrich", "kurt@example.org"),
    "s003": ("=HYPERLINK(1)", "+49 30", "x@example.org"),
    "absent": ("Nobody", "Niels", "niels@example.org"),
    "unreadable": ("Šťastná", "Žofie", "zofie@example.org"),
}
OVERRIDDEN = "s004"


@pytest.fixture(scope="session")
def graded_class(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course of which thirteen are graded, one cannot be, and one has handed in nothing."""
    course = classroom.make_course(root, tmp_path_factory.mktemp("reported"))
    everyone = class_of(60)
    for student in (*HONEST, *PLANTED):
        classroom.hand_in(course, student, everyone[student], only=tuple(MAKERS))
    classroom.write(course, "unreadable", "{")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student, (last, first, address) in ROSTER.items():
            gradebook.update_or_create_student(student, last_name=last, first_name=first, email=address)
    done, _ = classroom.grade(course)
    assert done.returncode == 1 and "unreadable" in done.stdout, done.stdout + done.stderr
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        grade = gradebook.find_grade("my_dropout_check", classroom.CHAPTER, classroom.CHAPTER, OVERRIDDEN)
        grade.manual_score = 1.5
        gradebook.db.commit()
    return course
