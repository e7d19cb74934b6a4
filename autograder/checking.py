"""``check``: what a notebook's test cell calls. Shows a verdict, and raises when something differs."""

from __future__ import annotations

import os
import sys
from typing import Any

from autograder.evaluation import evaluate
from autograder.exercise import Exercise
from autograder.messages import CheckFailed, NotSolvedYet, UsageError
from autograder.present import as_html, as_text, summary
from autograder.registry import load_exercise
from autograder.verdict import Verdict

GRADING_SEED_VARIABLE = "AUTOGRADER_GRADING_SEED"


def check(name: str, *parts: Any) -> float | None:
    """Check an implementation against the reference and show what agrees and what does not.

    Raises NotSolvedYet (a NotImplementedError) while the exercise is unwritten, CheckFailed when something differs,
    and UsageError when the call itself cannot mean anything; each is one sentence.

    While grading (the environment names a grading seed) the cases come from that seed, nothing is raised for a wrong
    answer, and the points earned are returned as a float, which is what nbgrader reads as partial credit.
    """
    exercise = load_exercise(name)
    seed = os.environ.get(GRADING_SEED_VARIABLE)
    if seed is not None:
        return _grade(exercise, parts, seed)
    verdict = evaluate(name, *parts)
    if verdict.unsolved:
        raise NotSolvedYet(f"{name} is still to be written: {_where(exercise, verdict)}") from None
    if verdict.problem and not verdict.total:
        raise UsageError(f"{name}: {verdict.problem}") from None
    show(exercise, verdict)
    _remember(name, verdict)
    _tell_progress(name)
    if not verdict.passed:
        raise CheckFailed(summary(exercise, verdict)) from None
    return None


def _grade(exercise: Exercise, parts: tuple[Any, ...], seed: str) -> float:
    verdict = evaluate(exercise.name, *parts, seed=grading_seed(seed))
    show(exercise, verdict, graded=True)
    return round(verdict.score * exercise.points, 2)


def grading_seed(text: str) -> int:
    """Return the seed that a grading secret stands for: any text, so that an instructor may choose a phrase."""
    import hashlib

    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") + 1


def show(exercise: Exercise, verdict: Verdict, graded: bool = False) -> None:
    """Display a verdict: HTML with a text twin in a notebook, plain text elsewhere."""
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if get_ipython() is not None:
            from IPython.display import display

            text, page = as_text(exercise, verdict, graded), as_html(exercise, verdict, graded)
            display({"text/plain": text, "text/html": page}, raw=True)
            return
    print(as_text(exercise, verdict, graded))


def _tell_progress(name: str) -> None:
    """Say how far the chapter is, where a reader's progress is kept at all."""
    from autograder.lesson import progress

    if progress.kept():
        from autograder.student.overview import progress_line

        print(progress_line(name))


def _where(exercise: Exercise, verdict: Verdict) -> str:
    if verdict.stop is not None and verdict.stop.line:
        return f"replace the NotImplementedError in line {verdict.stop.line} of its cell with your own code."
    return f"replace the NotImplementedError in {', '.join(exercise.parts)} with your own code."


def _remember(name: str, verdict: Verdict) -> None:
    """Note the outcome in the student's progress file, if there is one to write to."""
    try:
        from autograder.lesson.progress import record
    except ImportError:
        return
    record("check", name, {"passed": verdict.passed, "score": round(verdict.score, 3)})
