"""The student's commands: start, doctor, check, reset, preflight, site."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.messages import UsageError


def add_commands(commands: Any) -> list[argparse.ArgumentParser]:
    """Add the commands to a parser and return theirs."""
    start = commands.add_parser("start", help="write the start page with your progress")
    start.set_defaults(run=_start)
    doctor = commands.add_parser("doctor", help="say what works here and how to mend what does not")
    doctor.set_defaults(run=_doctor)
    check = commands.add_parser("check", help="run the notebooks as they are saved and print what their checks say")
    check.add_argument("chapters", nargs="*", help="chapters such as ch03; all when none is named")
    check.add_argument("--watch", action="store_true", help="check a chapter again whenever it is saved")
    check.set_defaults(run=_check)
    reset = commands.add_parser("reset", help="a fresh chapter; the old answers are kept beside it")
    reset.add_argument("chapter")
    reset.set_defaults(run=_reset)
    preflight = commands.add_parser("preflight", help="say what would break the grading of a chapter")
    preflight.add_argument("chapter")
    preflight.add_argument("--file", type=Path, help="a notebook elsewhere, to be looked at as that chapter's")
    preflight.set_defaults(run=_preflight)
    site = commands.add_parser("site", help="write the chapters as pages that need no kernel and no network")
    site.add_argument("--to", type=Path, default=Path("site"), help="the folder; an earlier site in it is replaced")
    site.add_argument("--solved", action="store_true", help="with the solutions")
    site.set_defaults(run=_site)
    return [start, doctor, check, reset, preflight, site]


def _root(options: argparse.Namespace) -> Path:
    root = options.root.resolve()
    if not (root / "notebooks").is_dir():
        raise UsageError(f"{root} holds no folder notebooks/: run this from the course's folder, or give --root.")
    return root


def _start(options: argparse.Namespace) -> int:
    from autograder.student.start_page import write_start_page

    print(write_start_page(_root(options)))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from autograder.student.doctor import screen

    text, well = screen(_root(options))
    print(text)
    return 0 if well else 1


def _check(options: argparse.Namespace) -> int:
    from autograder.student.state import report, watch

    root = _root(options)
    if options.watch:
        try:
            watch(root, options.chapters, lambda line: print(line, flush=True))
        except KeyboardInterrupt:
            print()
        return 0
    for line in report(root, options.chapters):
        print(line, flush=True)
    return 0


def _reset(options: argparse.Namespace) -> int:
    from autograder.student.reset import reset

    file, kept = reset(_root(options), options.chapter)
    print(f"{file.name} is as it was handed out." + (f" Your answers are kept in {kept.name}." if kept else ""))
    return 0


def _preflight(options: argparse.Namespace) -> int:
    from autograder.student.preflight import preflight, report

    found = preflight(_root(options), options.chapter, options.file)
    print(report(options.chapter, found))
    return 1 if any(one.serious for one in found) else 0


def _site(options: argparse.Namespace) -> int:
    from autograder.student.site import build_site

    target = options.to.resolve()
    try:
        pages = build_site(_root(options), target, options.solved)
    except OSError as error:
        raise UsageError(f"{target} cannot be written ({error.strerror}); name another folder with --to.") from None
    print(f"{len(pages)} pages; open {pages[0]}")
    return 0
