"""Grading one submission: a pure function of the submission, the assignment, the seed and the limits.

It runs in any process on any machine, and touches neither the gradebook nor the course's folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbformat.v4.rwbase import strip_transient

from autograder.grading.assignment import Assignment, Steps
from autograder.grading.confine import NONE
from autograder.grading.limits import LARGEST_NOTEBOOK, MOST_VALUES, Limits
from autograder.grading.sandbox import Sandbox, SandboxError
from autograder.grading.store import Store, environment_digest, key_of
from autograder.grading.ticket import Judgement, Ticket


@dataclass(frozen=True)
class Settings:
    """How to grade: everything that a worker needs beside the submission."""

    assignment: Assignment
    seed: int
    devices: tuple[str, ...] = ("cpu",)
    limits: Limits = Limits()
    sandbox: str = "auto"
    store: str | None = None
    force: bool = False
    cold: bool = False


@dataclass(frozen=True)
class Submission:
    """What a student handed in: notebooks as the bytes of their files, and the other files beside them.

    ``left_out`` names files that are links: they could be anything that the instructor may read.
    """

    student: str
    notebooks: Mapping[str, bytes]
    files: tuple[tuple[str, bytes], ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass
class GradedNotebook:
    """An executed, judged notebook as nbgrader would write it, with its cells that the gradebook asks about."""

    name: str
    text: str
    marked: NotebookNode
    judgements: list[Judgement] = field(default_factory=list)
    unfinished: str | None = None
    replayed: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
    key: str = ""


@dataclass
class Graded:
    """One submission's result. ``problem`` is a sentence when it could not be graded at all."""

    student: str
    notebooks: list[GradedNotebook] = field(default_factory=list)
    problem: str | None = None
    seconds: float = 0.0
    environment: str = field(default_factory=environment_digest)
    notes: list[str] = field(default_factory=list)


_sandboxes: dict[Any, Sandbox] = {}
_steps: dict[str, Steps] = {}
# Executors with threads exist (Dask's workers have them): everything but waiting for the sandbox happens one at a time.
_one_at_a_time = threading.RLock()


def grade(settings: Settings, submission: Submission) -> Graded:
    """Grade one submission. For whatever it holds, the answer is a Graded; its problem says what is in the way.

    Raises SandboxError when there is no sandbox here: that is nothing the submission could help.
    """
    began = time.perf_counter()
    result = Graded(submission.student)
    with _one_at_a_time:
        steps = _steps_of(settings.assignment)
    store = Store(Path(settings.store)) if settings.store else None
    for name in sorted(submission.notebooks):
        try:
            result.notebooks.append(_grade_notebook(settings, submission, name, steps, store, result.notes))
        except SandboxError:
            raise
        except Exception as error:
            result.problem = f"{name}.ipynb cannot be graded: {_in_words(error).rstrip('.')}."
            break
    result.seconds = time.perf_counter() - began
    return result


class NotANotebook(ValueError):
    """A file that cannot be read as a notebook; the sentence says why."""


def _in_words(error: Exception) -> str:
    if isinstance(error, NotANotebook):
        return str(error)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300] if text else 'no reason was given'}"


def read_notebook(data: bytes) -> NotebookNode:
    """Return a notebook from a file's bytes. Raises NotANotebook, in one sentence, when they are none."""
    if len(data) > LARGEST_NOTEBOOK:
        raise NotANotebook(f"the file has {len(data) >> 20} MB, and {LARGEST_NOTEBOOK >> 20} are allowed.")
    if sum(map(data.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise NotANotebook(f"it holds more than {MOST_VALUES} values.")
    try:
        text = data.decode("utf-8-sig")
        if "\\ud" in text.lower():  # Half of a surrogate pair can be read from a file, and be written to none.
            text = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace").decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # About identifiers of cells, which are mended while it is read.
            notebook = nbformat.reads(text, as_version=4)
    except UnicodeDecodeError:
        raise NotANotebook("its text is not UTF-8.") from None
    except RecursionError:
        raise NotANotebook("it is nested too deeply.") from None
    except (nbformat.reader.NotJSONError, json.JSONDecodeError):
        raise NotANotebook("it is not a notebook: its text is not JSON.") from None
    except (AttributeError, KeyError, TypeError, ValueError, nbformat.ValidationError) as error:
        raise NotANotebook(f"it is JSON, and no notebook ({type(error).__name__}).") from None
    if not isinstance(notebook.get("cells"), list):
        raise NotANotebook("it has no list of cells.")
    return notebook


def _grade_notebook(
    settings: Settings, submission: Submission, name: str, steps: Steps, store: Store | None, notes: list[str]
) -> GradedNotebook:
    with _one_at_a_time:
        notebook = steps.sanitize(read_notebook(submission.notebooks[name]), name)
    executed, judgements, unfinished, usage, replayed, key = execute_and_judge(
        notebook, submission.files, settings, store, notes
    )
    from autograder.grading.own_code import worth_a_look  # It needs torch, which the command itself does not.

    with _one_at_a_time:
        sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        if named := worth_a_look(sources, settings.assignment.preload.cells):
            notes.append(f"Worth a look: {submission.student} uses {', '.join(named[:5])} in {name}.ipynb.")
        finished = steps.finish(executed, name)
    _validate(finished)
    # On one line: indenting takes Python's slow way through a notebook, which is long when it holds figures.
    text = json.dumps(strip_transient(finished), sort_keys=True, ensure_ascii=False)
    marked = new_notebook(cells=[cell for cell in finished.cells if cell.metadata.get("nbgrader")])
    return GradedNotebook(name, text + "\n", marked, judgements, unfinished, replayed, usage, key)


def _validate(notebook: NotebookNode) -> None:
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError:
        # Fields that the format does not know are none of our business, but looking for them takes longer.
        nbformat.validate(notebook, relax_add_props=True)


def execute_and_judge(
    notebook: NotebookNode,
    files: Sequence[tuple[str, bytes]],
    settings: Settings,
    store: Store | None,
    notes: list[str] | None = None,
) -> tuple[NotebookNode, list[Judgement], str | None, dict[str, Any], bool, str]:
    """Execute a sanitized notebook and judge it, or take both from the store.

    Returns the notebook, the judgements, why cells were left out, what was used, whether it came from the store, and
    its key there. Raises SandboxError when there is no sandbox here.
    """
    ticket = Ticket(settings.seed, settings.devices)
    key = key_of(notebook, files, ticket, settings.limits, settings.sandbox != NONE)
    if store is not None and not settings.force and (found := store.get(key)) is not None:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            judged = [Judgement(**{**entry, "differing": tuple(entry["differing"])}) for entry in found["judgements"]]
            return nbformat.from_dict(found["notebook"]), judged, found["unfinished"], found["usage"], True, key
    if settings.cold or settings.sandbox == NONE or "cuda" in settings.devices:
        from autograder.grading.cold import run_cold

        notebook, unfinished, usage = run_cold(notebook, files, ticket, settings.limits, settings.sandbox)
    else:
        unfinished, usage = _run_warm(notebook, files, settings, ticket, [] if notes is None else notes)
    from autograder.grading.judge import judge_notebook

    with _one_at_a_time, one_thread():
        judgements = judge_notebook(notebook, ticket, unfinished)
    if store is not None:
        value = {"notebook": notebook, "unfinished": unfinished, "usage": usage}
        with contextlib.suppress(OSError):  # Without room for it the result is not kept, and is still a result.
            store.put(key, {**value, "judgements": [asdict(each) for each in judgements]})
    return notebook, judgements, unfinished, usage, False, key


def _run_warm(
    notebook: NotebookNode, files: Sequence[tuple[str, bytes]], settings: Settings, ticket: Ticket, notes: list[str]
) -> tuple[str | None, dict[str, Any]]:
    """Execute a notebook in this process's sandbox; once more in a fresh one where the sandbox was lost on the way.

    Raises RuntimeError when it was lost twice: the others' runs need not wait for what may be this submission's doing.
    """
    from autograder.grading.replay import run_cells

    for _ in range(2):
        with _one_at_a_time:
            sandbox = sandbox_for(settings)
        notes.extend(note for note in sandbox.notes if note not in notes)
        try:
            unfinished, usage = run_cells(notebook, sandbox, list(files), ticket)
        except SandboxError:
            if not sandbox.has_ended():
                raise
            continue
        # Whoever watches a submission reports how it ended, unless both were ended from outside.
        if not unfinished or usage or not sandbox.has_ended():
            return unfinished, usage
    raise RuntimeError("the sandbox was ended from outside twice while it ran (is there enough memory?)")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch add in the order in which it adds inside the sandbox: some exercises ask for equality bit for bit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _steps_of(assignment: Assignment) -> Steps:
    if assignment.digest not in _steps:
        _steps.clear()
        _steps[assignment.digest] = Steps(assignment)
    return _steps[assignment.digest]


def sandbox_for(settings: Settings) -> Sandbox:
    """Return this process's sandbox for the settings, started at first use. Raises SandboxError when there is none."""
    key = (settings.assignment.preload, settings.sandbox, settings.limits)
    sandbox = _sandboxes.get(key)
    if sandbox is None or not sandbox.is_alive():
        close_sandboxes()
        preload = settings.assignment.preload
        store = Store(Path(settings.store)) if settings.store else None
        name = hashlib.sha256(f"modules {preload.cells} {environment_digest()}".encode()).hexdigest()
        if store is not None and (known := store.get(name)) and preload.modules is None:
            preload = replace(preload, modules=tuple(known["modules"]))
        sandbox = _sandboxes[key] = Sandbox(settings.sandbox, preload, settings.limits)
        if store is not None and preload.modules is None:
            with contextlib.suppress(OSError):
                store.put(name, {"modules": sandbox.modules})
    return sandbox


def close_sandboxes() -> None:
    """End every sandbox of this process."""
    while _sandboxes:
        _sandboxes.popitem()[1].close()
