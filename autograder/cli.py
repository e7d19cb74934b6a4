"""The command line, for authors and instructors. One sentence for what cannot be done, and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.grading.command import add_arguments
from autograder.instructor import command as instructor
from autograder.messages import UsageError
from autograder.student import command as student


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 something is not as it should be, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="autograder", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the notebooks from solutions/*/*.py")
    build.add_argument("chapters", nargs="*", help="chapters such as ch03; all when none is named")
    build.add_argument("--check", action="store_true", help="build nothing; say which notebooks are not fresh")
    build.set_defaults(run=_build)
    bench = commands.add_parser("bench", help="time what people wait for, beside a peer in the same run")
    bench.add_argument("parts", nargs="*", help="checks, figures, grading; all when none is named")
    bench.add_argument("--classes", type=int, nargs="+", default=[20, 200], metavar="N", help="sizes of the classes")
    bench.add_argument("--stock", type=int, nargs="+", default=[20], metavar="N", help="the same for stock nbgrader")
    bench.set_defaults(run=_bench)
    grade = commands.add_parser("grade", help="grade a class: sandboxed, judged outside the students' processes")
    add_arguments(grade)
    for command in (build, bench, grade, *student.add_commands(commands), *instructor.add_commands(commands)):
        command.add_argument("--root", type=Path, default=Path.cwd(), help="the repository's folder")
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def _build(options: argparse.Namespace) -> int:
    from autograder.authoring.build import build, stale

    root = options.root.resolve()
    if not (root / "solutions").is_dir():
        raise UsageError(f"{root} holds no folder solutions/: run this from the repository's folder, or give --root.")
    if options.check:
        sentences = stale(root, options.chapters)
        print("\n".join(sentences) if sentences else "Every notebook is what its source gives.")
        return 1 if sentences else 0
    for file in build(root, options.chapters):
        print(f"built {file.relative_to(root)}")
    return 0


def _bench(options: argparse.Namespace) -> int:
    import itertools

    from autograder.benchmarks import check_time, grading_time, simulation_time, table

    root = options.root.resolve()
    parts = {
        "checks": lambda: check_time.rows(root),
        "figures": lambda: simulation_time.rows(root),
        "grading": lambda: grading_time.rows(root, options.classes, options.stock),
    }
    if unknown := [name for name in options.parts if name not in parts]:
        raise UsageError(f"There is nothing called {unknown[0]!r} to time; there are: {', '.join(parts)}.")
    if min(*options.classes, *options.stock, 1) < 1:
        raise UsageError("A class has at least one student.")
    chosen = (rows() for name, rows in parts.items() if name in options.parts or not options.parts)
    for line in table(itertools.chain.from_iterable(chosen)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
