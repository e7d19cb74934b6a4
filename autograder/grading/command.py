"""``autograder grade``: what an instructor runs, and what it says."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.grading.confine import BUBBLEWRAP, LANDLOCK, NAMESPACES, NONE
from autograder.messages import UsageError

DONE, SOME_FAILED, NOT_POSSIBLE, INTERRUPTED = 0, 1, 3, 130

EPILOG = """exit codes: 0 every submission is graded; 1 some could not be (each is named), or --verify found a
difference; 2 wrong usage; 3 nothing can be graded here: no sandbox, or no gradebook; 130 stopped by an interrupt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("chapter", help="the chapter's folder, such as ch03_buffers_and_state")
    parser.add_argument("--student", default="*", help="only this student")
    parser.add_argument("--force", action="store_true", help="grade again what is graded already")
    parser.add_argument("--jobs", type=int, default=0, help="how many at a time (default: one a processor)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster, such as tcp://host:8786")
    levels = ("auto", NAMESPACES, BUBBLEWRAP, LANDLOCK, NONE)
    parser.add_argument("--sandbox", choices=levels, default="auto", help="the best there is, or one kind (or none)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: in fresh processes, slower")
    parser.add_argument("--verify", type=float, metavar="P", default=0.0, help="grade P percent again on cold kernels")
    parser.add_argument("--json", metavar="FILE", help="write the summary as JSON (- for standard output)")
    parser.set_defaults(run=grade_class)


def grade_class(options: argparse.Namespace) -> int:
    """Grade a class and return the exit code. Raises UsageError for what cannot be meant."""
    without_slow_grammar()
    from autograder.grading.engine import Engine, GradebookError, SandboxError

    if options.jobs < 0 or not 0 <= options.verify <= 100:
        raise UsageError("--jobs takes a number from 1, and --verify a percentage from 0 to 100.")
    began = time.perf_counter()
    progress = Progress()
    engine: Engine | None = None
    try:
        engine, students = _prepare(options, progress)
        code = _run(engine, options, students, progress)
    except (GradebookError, SandboxError) as error:
        progress.clear()
        print(error, file=sys.stderr)
        code = NOT_POSSIBLE
    except KeyboardInterrupt:  # The second one: the first is taken as a request to finish what is running.
        progress.clear()
        code = INTERRUPTED
    finally:
        if engine is not None:
            engine.writer.gradebook.close()
    if engine is not None:
        engine.report.seconds = time.perf_counter() - began
        _summarize(engine, options, code)
    return code


def _prepare(options: argparse.Namespace, progress: Progress) -> tuple[Any, list[str]]:
    from autograder.grading.assignment import read_assignment
    from autograder.grading.course import limits_of, load_course, seed_of
    from autograder.grading.enclosure import exposed
    from autograder.grading.engine import Engine, submitted_students
    from autograder.grading.grade import Settings
    from autograder.grading.gradebook import Writer, open_gradebook
    from autograder.grading.store import Journal

    course = load_course(options.root.resolve())
    directory, chapter = course.directory, options.chapter
    if options.sandbox != NONE and (below := exposed(course.root)):
        raise UsageError(f"{course.root} lies below {below}, which submissions can read: move the course elsewhere.")
    gradebook = open_gradebook(directory)
    try:
        source = Path(directory.format_path(directory.source_directory, ".", chapter))
        assignment = read_assignment(gradebook, chapter, source, course.config)
        students = submitted_students(directory, chapter, options.student)
        if not students:
            raise UsageError(_nothing_to_grade(gradebook, course, chapter, options.student))
        settings = Settings(
            assignment,
            seed_of(course.config, course.root),
            (options.device,),
            limits_of(course.config),
            options.sandbox,
            None if options.scheduler else str(course.state / "results"),
            options.force,
        )
        writer = Writer(gradebook, directory, course.config)
        journal = Journal(course.state / "journal" / f"{chapter}.jsonl")
    except BaseException:
        gradebook.close()
        raise
    if options.sandbox == NONE:
        print("No sandbox: students' code runs with all that you may do.", file=sys.stderr)
    if options.device == "cuda":
        print("On a GPU each submission gets a fresh process: a CUDA context cannot be forked.", file=sys.stderr)
    return Engine(directory, settings, writer, journal, progress.show), students


def _nothing_to_grade(gradebook: Any, course: Any, chapter: str, student: str) -> str:
    name = "STUDENT" if student == "*" else student
    folder = Path(course.directory.format_path(course.directory.submitted_directory, name, chapter))
    where = folder.relative_to(course.root)
    if student == "*":
        return f"There is nothing to grade: nobody has a folder {where}."
    known = student in {each.id for each in gradebook.students}
    return f"There is nothing to grade: there is no folder {where}" + (
        "." if known else f", and the gradebook knows no student {student}: a slip in the name?"
    )


def _run(engine: Any, options: argparse.Namespace, students: list[str], progress: Progress) -> int:
    from autograder.grading.engine import finishing_on_interrupt, verify

    with executor(options, len(students)) as (pool, jobs), finishing_on_interrupt() as stopping:
        progress.begin(len(students))
        report = engine.run(pool, jobs, students, stopping)
        progress.clear()
        if options.verify and not stopping():
            graded = [each.student for each in report.outcomes if each.state in ("recorded", "unchanged")]
            chosen = random.sample(graded, min(len(graded), math.ceil(len(graded) * options.verify / 100)))
            report.verified = verify(engine, pool, sorted(chosen))
    if report.stopped:
        return INTERRUPTED
    differing = any(entry["differences"] for entry in report.verified)
    return SOME_FAILED if report.count("failed") or differing else DONE


@contextmanager
def executor(options: argparse.Namespace, submissions: int) -> Iterator[tuple[Executor, int]]:
    """Yield what runs the submissions, and how many it runs at a time. Raises UsageError for an unknown scheduler."""
    if options.scheduler:
        try:
            from dask.distributed import Client
        except ImportError:
            raise UsageError("--scheduler needs Dask: pip install -c requirements.lock -e '.[cluster]'") from None
        from autograder.grading.apart import ApartExecutor

        try:
            client = Client(options.scheduler, timeout=20)
        except (OSError, ValueError) as error:
            raise UsageError(f"No Dask scheduler answers at {options.scheduler}: {error}") from None
        with client:
            jobs = sum(client.nthreads().values())
            if not jobs:
                raise UsageError(f"The Dask scheduler at {options.scheduler} has no workers.")
            yield ApartExecutor(client.get_executor(pure=False)), jobs
        return
    import multiprocessing

    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = min(options.jobs or here, submissions)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        try:
            yield pool, jobs
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def without_slow_grammar() -> None:
    """Keep jsonschema from compiling a grammar of web addresses, which takes it a second and serves no notebook."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def _begin_worker() -> None:
    """Prepare a local worker process: an interrupt is the main process's business, and its sandbox ends with it."""
    import signal
    from multiprocessing.util import Finalize

    without_slow_grammar()
    from autograder.grading.grade import close_sandboxes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith("linux"):
        from autograder.grading.confine import die_with_parent

        die_with_parent()
    Finalize(None, close_sandboxes, exitpriority=10)


class Progress:
    """A bar with an honest estimate on a terminal, and a line now and then elsewhere."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.total = 0
        self.began = self.first = 0.0
        self.worked = 0
        self.told = 0.0

    def begin(self, total: int) -> None:
        """Start the clock."""
        self.total, self.began = total, time.monotonic()
        self._write(f"Starting the sandbox for {total} submissions.")

    def show(self, outcome: Any, done: int, total: int) -> None:
        """Say that one more is done."""
        now = time.monotonic()
        if outcome.state == "recorded":
            self.worked += 1
            self.first = self.first or now
        if outcome.state == "failed" or outcome.sentence:
            self.clear()
            print(f"{outcome.student}: {outcome.sentence}", file=sys.stderr)
        filled = 24 * done // max(total, 1)
        bar = "█" * filled + "░" * (24 - filled)
        self._write(f"{bar} {done} of {total}, {self._left(now, total - done)}", last=done == total)

    def _left(self, now: float, left: int) -> str:
        """Return how long it will take, from the pace so far; starting up is not part of the pace."""
        if not left:
            return f"{now - self.began:.0f} s"
        if self.worked < 3:
            return "time left: not known yet"
        seconds = (now - self.first) / (self.worked - 1) * left
        return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"

    def _write(self, text: str, last: bool = False) -> None:
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif last or time.monotonic() - self.told > 10:
            self.told = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for a line of text."""
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _summarize(engine: Any, options: argparse.Namespace, code: int) -> None:
    report = engine.report
    graded = report.count("recorded") + report.count("unchanged")
    print(f"{report.chapter}: {graded} of {engine.total or len(report.outcomes)} submissions graded", end="")
    print(f" ({report.count('unchanged')} were already), in {report.seconds:.1f} s.")
    for name, points, maximum, wrong in exercise_rows(report):
        print(f"  {name}: {points:.2f} of {maximum:g} points on average{wrong}")
    for outcome in report.outcomes:
        if outcome.state == "failed":
            print(f"  not graded: {outcome.student}: {outcome.sentence}")
    for entry in report.verified:
        said = "; ".join(entry["differences"][:3]) or "the same"
        print(f"  on a cold kernel: {entry['student']}: {said}")
    for note in report.notes:
        print(f"  note: {note}")
    if left := report.count("left"):
        how_many = f"{left} {'is' if left == 1 else 'are'} left"
        print(f"Stopped: {how_many}. To go on where this stopped: autograder grade {report.chapter}")
    if options.json:
        text = json.dumps({"exit_code": code, **asdict(report)}, indent=1)
        if options.json == "-":
            print(text)
        else:
            try:
                Path(options.json).write_text(text + "\n", encoding="utf-8")
            except OSError as error:
                print(f"The summary cannot be written to {options.json}: {error.strerror}.", file=sys.stderr)


def exercise_rows(report: Any) -> Iterator[tuple[str, float, float, str]]:
    """Yield each exercise with its average, its maximum, and the misconception that most students share."""
    found: dict[str, list[dict[str, Any]]] = {}
    for outcome in report.outcomes:
        for entry in outcome.judgements:
            found.setdefault(entry["exercise"] or entry["cell"], []).append(entry)
    for name, entries in found.items():
        seen = [entry["misconception"] for entry in entries if entry["misconception"]]
        most = max(sorted(set(seen)), key=seen.count, default=None)
        wrong = f"; {seen.count(most)} of {len(entries)} share {most}" if most else ""
        yield name, sum(entry["points"] for entry in entries) / len(entries), entries[0]["maximum"], wrong
