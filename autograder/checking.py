"""``check``: what a notebook's test cell calls. Shows a verdict, and raises when something differs."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Sequence
from typing import Any

from autograder.evaluation import evaluate, observe_for
from autograder.exercise import Exercise
from autograder.grading.ticket import (
    EMISSION_TYPE,
    GRADING_DEVICES_VARIABLE,
    GRADING_RUN_VARIABLE,
    GRADING_SEED_VARIABLE,
)
from autograder.messages import CheckFailed, NotSolvedYet, UsageError
from autograder.present import as_html, as_text, summary
from autograder.registry import load_exercise
from autograder.verdict import Verdict


def check(name: str, *parts: Any) -> None:
    """Check an implementation against the reference and show what agrees and what does not.

    Raises NotSolvedYet (a NotImplementedError) while the exercise is unwritten, CheckFailed when something differs,
    and UsageError when the call itself cannot mean anything; each is one sentence.

    While grading (the environment names a grading seed) the cases come from that seed and nothing is compared here:
    what was observed is handed to the judge, another process, which scores it.
    """
    exercise = load_exercise(name)
    seed = os.environ.get(GRADING_SEED_VARIABLE)
    if seed is not None:
        _emit(exercise, parts, int(seed))
        return
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


def _emit(exercise: Exercise, parts: tuple[Any, ...], seed: int) -> None:
    devices = os.environ.get(GRADING_DEVICES_VARIABLE, "cpu").split(",")
    hand_over(emission_of(exercise, parts, seed, devices, os.environ.get(GRADING_RUN_VARIABLE, "")))


def hand_over(emission: dict[str, Any]) -> None:
    """Display what was observed under a private type, for the judge alone. The sandbox has a shorter way of its own."""
    from IPython.display import display

    display({EMISSION_TYPE: emission}, raw=True)


def emission_of(
    exercise: Exercise, parts: tuple[Any, ...], seed: int, devices: Sequence[str], run: str
) -> dict[str, Any]:
    """Return what an implementation showed in the form that crosses to the judge; ``run`` names the grading run."""
    from autograder.grading.transport import TransportError, pack

    seen = observe_for(exercise, parts, seed, devices)
    problem, packed = seen.problem, {}
    try:
        packed = {kind: base64.b64encode(pack(records)).decode() for kind, records in seen.records.items()}
    except TransportError as error:
        problem = str(error)
    return {
        "run": run,
        "exercise": exercise.name,
        "problem": _one_line(problem),
        "handed": _one_line(seen.handed),
        "records": packed,
    }


def _one_line(text: str | None) -> str | None:
    if text is None:
        return None
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))[:2000]


def show(exercise: Exercise, verdict: Verdict) -> None:
    """Display a verdict: HTML with a text twin in a notebook, plain text elsewhere."""
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if get_ipython() is not None:
            from IPython.display import display

            text, page = as_text(exercise, verdict), as_html(exercise, verdict)
            display({"text/plain": text, "text/html": page}, raw=True)
            return
    print(as_text(exercise, verdict))


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
