"""``autograder report``: one page and one table on how a class did in a chapter."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

NOT_POSSIBLE = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.epilog = "exit codes: 0 written; 2 wrong usage, or nothing is graded yet; 3 the gradebook cannot be read"
    parser.add_argument("chapter", help="the chapter's folder, such as ch03_buffers_and_state")
    parser.add_argument("--to", type=Path, default=Path("reports"), help="the folder for CHAPTER.html and CHAPTER.csv")
    parser.add_argument("--anonymous", action="store_true", help="numbers instead of the students' ids")
    parser.set_defaults(run=write_class_report)


def write_class_report(options: argparse.Namespace) -> int:
    """Write the report and say where. Raises UsageError for what cannot be meant."""
    from autograder.grading.course import load_course
    from autograder.grading.gradebook import GradebookError
    from autograder.instructor.class_results import read_class
    from autograder.instructor.report import write_report

    target = options.to.resolve()
    course = load_course(options.root.resolve())
    try:
        found = read_class(course, options.chapter)
    except GradebookError as error:
        print(error, file=sys.stderr)
        return NOT_POSSIBLE
    for file in write_report(found, course, target, options.anonymous):
        print(file)
    return 0
