"""The instructor's commands around a term: course, roster, report."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.instructor import report_command
from autograder.messages import UsageError

EPILOG = """A chapter may be called ch03. Example: autograder course ~/nn_2027 --chapters ch02 ch03
--due ch02=2027-02-05 ch03=2027-02-12T18:00 --timezone Europe/Zurich --roster class.csv --points ch03=20
--late-per-day 10%% --grace-minutes 30"""


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add the commands to a parser and return theirs."""
    course = commands.add_parser("course", help="a course folder for a class, made from this repository", epilog=EPILOG)
    course.add_argument("folder", type=Path, help="where; nothing may be there yet")
    course.add_argument("--chapters", nargs="+", default=[], metavar="CHAPTER", help="all when none is named")
    course.add_argument("--name", default="", help="the course's name in nbgrader's exchange (default: the folder's)")
    course.add_argument(
        "--due", nargs="+", default=[], metavar="CHAPTER=DATE", help="a date alone means 23:59 that day"
    )
    course.add_argument("--timezone", default="", help="such as Europe/Zurich (default: this machine's)")
    course.add_argument("--roster", type=Path, metavar="CSV", help="the class list; the first line names the columns")
    course.add_argument("--points", nargs="+", default=[], metavar="CHAPTER=POINTS", help="another total for a chapter")
    course.add_argument(
        "--seed", default="", help="any phrase; grading draws its cases from it (default: a random one)"
    )
    course.add_argument("--exchange", type=Path, help="nbgrader's exchange folder, where students use this machine too")
    course.add_argument("--late-per-day", default="0", metavar="COST", help="10%% of the score, or 2 for two points")
    course.add_argument("--grace-minutes", type=float, default=0.0, help="how late may be at no cost")
    course.set_defaults(run=_course)
    roster = commands.add_parser("roster", help="add a class list to a course, or bring it up to date")
    roster.add_argument("file", type=Path, help="CSV; the first line names the columns: id, first_name, last_name, …")
    roster.set_defaults(run=_roster)
    report = commands.add_parser("report", help="one page and one table on how a class did in a chapter")
    report_command.add_arguments(report)
    return [course, roster, report]


def _course(options: argparse.Namespace) -> int:
    from autograder.authoring.build import chapters
    from autograder.instructor.due_dates import read_due_date, read_timezone, written
    from autograder.instructor.new_course import Plan, chapter_named, make_course
    from autograder.instructor.roster import read_roster

    root = options.root.resolve()
    if not (root / "solutions").is_dir():
        raise UsageError(f"{root} holds no folder solutions/: run this from the repository's folder, or give --root.")
    read_timezone(options.timezone)
    chosen = chapters(root, options.chapters)
    per_day, unit = _cost(options.late_per_day)
    if options.grace_minutes < 0:
        raise UsageError("--grace-minutes takes 0 or more.")
    pairs = {
        option: [(chapter_named(root, key, chosen), text) for key, text in _pairs(option, getattr(options, option))]
        for option in ("due", "points")
    }
    for option, found in pairs.items():
        _refuse_twice(option, [chapter for chapter, _ in found])
    plan = Plan(
        chosen,
        options.name,
        {chapter: read_due_date(text, options.timezone) for chapter, text in pairs["due"]},
        {chapter: _positive(text) for chapter, text in pairs["points"]},
        read_roster(options.roster) if options.roster else [],
        options.seed.strip(),
        str(options.exchange.expanduser().resolve()) if options.exchange else "",
        options.timezone,
        per_day,
        unit,
        options.grace_minutes,
    )
    folder = options.folder.expanduser().absolute()
    points = make_course(root, folder, plan)
    print(f"The course {plan.course_id} is in {folder}")
    for chapter in chosen:
        due = f"due {written(plan.due[chapter])}" if chapter in plan.due else "no due date"
        print(f"  {chapter}: {points[chapter]:g} points, {due}")
    print(f"  {len(plan.students)} students" if plan.students else "  no students yet: autograder roster CSV adds them")
    print(f"Next: cd {shlex.quote(str(folder))} && nbgrader generate_assignment {chosen[0]}")
    return 0


def _roster(options: argparse.Namespace) -> int:
    from autograder.instructor.new_course import enrol
    from autograder.instructor.roster import read_roster

    students = read_roster(options.file)
    new, missing = enrol(options.root.resolve(), students)
    print(f"{len(students)} students on the list: {len(new)} are new, {len(students) - len(new)} were known.")
    if missing:
        print(f"In the gradebook and not on the list, left as they are: {', '.join(missing)}.")
        print("To remove one: nbgrader db student remove ID")
    return 0


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    found = [text.partition("=") for text in texts]
    for text, (key, sign, value) in zip(texts, found, strict=True):
        if not (key.strip() and sign and value.strip()):
            raise UsageError(f"--{option} takes CHAPTER=VALUE, such as ch03=…; {text!r} is not that.")
    return [(key.strip(), value.strip()) for key, _, value in found]


def _refuse_twice(option: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--{option} names {', '.join(twice)} twice.")


def _positive(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d{1,2})?", text) or not float(text):
        raise UsageError(f"--points takes a number above 0 with at most two decimals; {text!r} is not that.")
    return float(text)


def _cost(text: str) -> tuple[float, str]:
    from autograder.instructor.late_penalty import PERCENT, POINTS

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if not found or (found[2] and float(found[1]) > 100):
        raise UsageError(f"--late-per-day takes 10% (of the score) or 2 (points); {text!r} is neither.")
    return float(found[1]), PERCENT if found[2] else POINTS
