"""The instructor's commands around a term: course, roster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add the commands to a parser and return theirs."""
    course = commands.add_parser("course", help="a course folder for a class, made from this repository")
    course.add_argument("folder", type=Path, help="where; nothing may be there yet")
    course.set_defaults(run=_course)
    return [course]


def _course(options: argparse.Namespace) -> int:
    raise NotImplementedError
