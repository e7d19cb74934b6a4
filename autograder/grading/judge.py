"""The judge: compares what a student's process says it observed with the reference, scores it, and writes the verdict.

It runs no student code. What it trusts is the text of the check cells (nbgrader puts back the instructor's), the
grading seed and its own reference; what it reads from the student's process is data, checked before it is used.

What this prevents: a score comes from comparing observations, so that replacing ``check``, the comparison, the
reference, the gradebook or the outputs of other cells gains nothing, and an emission that was written down beforehand
does not carry this run's number. What it cannot prevent: the probe runs in the student's process, so code that takes
over the autograder's own functions there can send the observations of a right implementation. It has to compute
them for cases that it meets only at that moment; the source of the cells stays in the notebook for anyone to read.
"""

from __future__ import annotations

import ast
import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from autograder.evaluation import Seen, drawn_cases, weigh
from autograder.exercise import Exercise
from autograder.grading.own_code import handed_over
from autograder.grading.ticket import EMISSION_TYPE, Judgement, Ticket
from autograder.grading.transport import LARGEST_MESSAGE, LONGEST_STRING, TransportError, unpack
from autograder.messages import UsageError
from autograder.present import as_html, as_text
from autograder.registry import load_exercise
from autograder.verdict import Verdict

LONGEST_REPORT = 100_000


def judge_notebook(notebook: NotebookNode, ticket: Ticket, unfinished: str | None = None) -> list[Judgement]:
    """Score every check cell of an executed notebook and replace what its process said by the verdict.

    ``unfinished`` says why cells were not run, when they were not. A graded cell that calls no ``check`` is left to
    nbgrader's rules. Emissions anywhere else are removed.
    """
    found: list[Judgement] = []
    sources: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = checked_exercise(cell)
        emissions = [output.data[EMISSION_TYPE] for output in cell.outputs if _is_emission(output)]
        cell.outputs = [output for output in cell.outputs if not _is_emission(output)]
        if name is not None:
            found.append(_judge_cell(cell, load_exercise(name), emissions, ticket, sources, unfinished))
        elif is_graded(cell) and unfinished and cell.execution_count is None:
            _write(cell, 0.0, None, unfinished)
            found.append(Judgement(cell.metadata.nbgrader["grade_id"], "", 0.0, _maximum(cell), unfinished))
        sources.append(cell.source)
    return found


def is_graded(cell: NotebookNode) -> bool:
    """Whether a code cell is scored by its outputs: a test, and not an answer that a person reads."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def checked_exercise(cell: NotebookNode) -> str | None:
    """Return the exercise that a graded cell checks, or None when it is no such cell or names no exercise."""
    if not is_graded(cell):
        return None
    try:
        body = ast.parse(cell.source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "check" and call.args:
            name = call.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                try:
                    return load_exercise(name.value).name
                except UsageError:
                    return None
    return None


def _is_emission(output: Mapping[str, Any]) -> bool:
    return EMISSION_TYPE in (output.get("data") or {})


def _maximum(cell: NotebookNode) -> float:
    return float(cell.metadata.nbgrader["points"])


def _judge_cell(
    cell: NotebookNode,
    exercise: Exercise,
    emissions: Sequence[Any],
    ticket: Ticket,
    sources: Sequence[str],
    unfinished: str | None,
) -> Judgement:
    verdict, reason = None, _why_nothing_to_judge(cell, exercise, emissions, unfinished)
    if reason is None:
        try:
            verdict = _verdict(exercise, read_emission(emissions[0], exercise, ticket), ticket, sources)
        except TransportError as error:
            reason = f"What the check of {exercise.name} handed over cannot be read: {error}"
        except Exception as error:  # A defect of ours must not cost the class its grades; the summary names it.
            reason = f"What {exercise.name} showed could not be compared ({type(error).__name__}: {str(error)[:200]})."
    points = 0.0 if verdict is None else round(verdict.score * _maximum(cell), 2)
    _write(cell, points, None if verdict is None else (exercise, verdict), reason)
    return Judgement(
        cell.metadata.nbgrader["grade_id"],
        exercise.name,
        points,
        _maximum(cell),
        reason or (verdict.problem if verdict else None),
        verdict.misconception if verdict else None,
        tuple(verdict.differing) if verdict else (),
    )


def _why_nothing_to_judge(
    cell: NotebookNode, exercise: Exercise, emissions: Sequence[Any], unfinished: str | None
) -> str | None:
    if any(output.output_type == "error" for output in cell.outputs):
        return f"The check of {exercise.name} ended with an error, so that there is nothing to score."
    if not emissions and unfinished and cell.execution_count is None:
        return unfinished
    if not emissions:
        return f"No observations of {exercise.name} arrived from its check."
    if len(emissions) > 1:
        return f"Observations of {exercise.name} arrived {len(emissions)} times from one check; none of them counts."
    return None


def _verdict(exercise: Exercise, seen: Seen, ticket: Ticket, sources: Sequence[str]) -> Verdict:
    read = None if seen.problem else handed_over(exercise, sources)
    return weigh(exercise, Seen(seen.problem, seen.records, seen.handed or read), ticket.seed)


def read_emission(emission: Any, exercise: Exercise, ticket: Ticket) -> Seen:
    """Return what an emission says was seen. Raises TransportError when it is not one of this run's, or malformed."""
    if not isinstance(emission, dict) or set(emission) != {"run", "exercise", "problem", "handed", "records"}:
        raise TransportError("it does not have the fields of an emission.")
    if emission["run"] != ticket.run or emission["exercise"] != exercise.name:
        raise TransportError("it was not made by this check in this run.")
    for key in ("problem", "handed"):
        said = emission[key]
        if said is not None and not (isinstance(said, str) and len(said) <= LONGEST_STRING and said.isprintable()):
            raise TransportError(f"its field {key!r} is not a sentence.")
    if emission["problem"]:
        return Seen(emission["problem"], {})
    records = emission["records"]
    if not isinstance(records, dict) or list(records) != list(ticket.devices):
        raise TransportError("it holds other devices than were asked for.")
    seen = {}
    for kind, text in records.items():
        seen[kind] = unpack(_decoded(text))
        wanted = [case.name for case in drawn_cases(exercise.name, ticket.seed, kind)]
        if [record.case for record in seen[kind]] != wanted:
            raise TransportError("it holds other cases than were asked for.")
    return Seen(None, seen, emission["handed"])


def _decoded(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) > LARGEST_MESSAGE * 4 // 3 + 4:
        raise TransportError("its records are not text, or too long.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise TransportError("its records are not base64.") from None


def _write(cell: NotebookNode, points: float, judged: tuple[Exercise, Verdict] | None, reason: str | None) -> None:
    """Leave in the cell what its reader needs, such that nbgrader reads exactly ``points`` from it."""
    kept = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            # nbgrader gives no points to a cell that wrote there; a warning is not a wrong answer.
            output.name = "stdout"
        if output.output_type in ("stream", "display_data", "error"):
            kept.append(output)
    if judged is not None:
        text, page = as_text(*judged, _maximum(cell)), as_html(*judged, _maximum(cell))
    else:
        text, page = reason or "", ""
    if len(page) > LONGEST_REPORT:
        text, page = "The report on this check is too long to be shown.", ""
    data = {"text/plain": text, "text/html": page} if page else {"text/plain": text}
    kept.append(new_output("display_data", data=data))
    kept.append(new_output("execute_result", data={"text/plain": repr(points)}, execution_count=cell.execution_count))
    cell.outputs = kept
