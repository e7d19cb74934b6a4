"""Made-up notebooks, observations and messages: a score within its bounds or one sentence, and never anything else.

Bounded and the same at each run in CI; ``make fuzz`` makes up others, for longer.
"""

from __future__ import annotations

import base64
import copy
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.utils import determine_grade, is_grade
from torch import nn
from traitlets.config import Config

from autograder.checking import emission_of
from autograder.grading import grade as grading
from autograder.grading.assignment import Assignment, read_assignment
from autograder.grading.course import load_course
from autograder.grading.grade import Settings, Submission, grade
from autograder.grading.judge import judge_notebook
from autograder.grading.replay import run_cells
from autograder.grading.sandbox import Ending
from autograder.grading.ticket import EMISSION_TYPE, Ticket
from autograder.grading.transport import TransportError, unpack
from autograder.registry import load_exercise
from tests.grading.classroom import CHAPTER
from tests.hostile.case import short_notebook

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
bounded = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True)
    | st.text(st.characters(exclude_categories=()), max_size=12)
    | st.sampled_from(["my_dropout_check", "grade_id", "code", "markdown", "F32", "nan", "\ud800", "cpu", "", "check"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def damaged(draw: Callable[[Any], Any], value: Any) -> Any:
    """A copy of JSON with something else in one to four of its places, or without them, or with them twice."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 4))):
        place, parent, key = value, None, None
        for _ in range(draw(st.integers(0, 7))):
            keys = (
                list(place) if isinstance(place, dict) else list(range(len(place))) if isinstance(place, list) else []
            )
            if not keys:
                break
            parent, key = place, draw(st.sampled_from(keys))
            place = parent[key]
        if parent is None:
            continue
        act = draw(st.sampled_from(["replace", "replace", "replace", "remove", "again"]))
        if act == "replace":
            parent[key] = draw(ANYTHING)
        elif act == "remove":
            del parent[key]
        elif isinstance(parent, list):
            parent.insert(key, copy.deepcopy(place))
        else:
            parent[draw(st.text(max_size=8))] = copy.deepcopy(place)
    return value


@pytest.fixture(scope="module")
def assignment(released: Path) -> Assignment:
    """The released chapter as the engine knows it."""
    before = os.getcwd()
    course = load_course(released)
    os.chdir(before)
    with Gradebook(f"sqlite:///{released / 'gradebook.db'}") as gradebook:
        return read_assignment(gradebook, CHAPTER, released / "solutions" / CHAPTER, Config(course.config))


@pytest.fixture(scope="module")
def notebook(released: Path) -> dict[str, Any]:
    """The notebook that students got, as JSON."""
    return json.loads(nbformat.writes(short_notebook(released)))


def _graded(assignment: Assignment, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grade a file whose cells are not run: nothing was observed, so that nothing may be scored."""
    monkeypatch.setattr(grading, "_run_warm", lambda *parts: (None, {}))
    found = grade(Settings(assignment, 5), Submission("somebody", {CHAPTER: data}))
    if found.problem is not None:
        assert "\n" not in found.problem and len(found.problem) < 500
        return
    (made,) = found.notebooks
    nbformat.validate(nbformat.reads(made.text, as_version=4), relax_add_props=True)
    made.text.encode("utf-8")
    checks = [cell for cell in made.marked.cells if is_grade(cell)]
    assert sorted(cell.metadata.nbgrader.grade_id for cell in checks) == sorted(
        cell["name"] for cell in assignment.notebooks[0].grade_cells
    )
    assert [determine_grade(cell)[0] for cell in checks] == [0.0] * len(checks)


def test_a_damaged_notebook_is_graded_or_reported(assignment: Assignment, notebook: dict) -> None:
    @bounded
    @given(damaged(notebook))
    def holds(value: Any) -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            _graded(assignment, json.dumps(value).encode(), monkeypatch)

    holds()


def test_a_file_of_any_bytes_is_reported(assignment: Assignment, notebook: dict) -> None:
    whole = json.dumps(notebook).encode()

    @bounded
    @given(
        st.binary(max_size=200)
        | ANYTHING.map(lambda value: json.dumps(value).encode())
        | st.tuples(st.integers(0, len(whole)), st.binary(max_size=6), st.integers(0, 30)).map(
            lambda cut: whole[: cut[0]] + cut[1] + whole[cut[0] + cut[2] :]
        )
    )
    def holds(data: bytes) -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            _graded(assignment, data, monkeypatch)

    holds()


TICKET = Ticket(77)
CHECK = 'check("my_dropout", MyDropout)'


@functools.cache
def _right_emission() -> dict[str, Any]:
    class MyDropout(nn.Dropout):
        pass

    exercise = load_exercise("my_dropout")
    return {**emission_of(exercise, (MyDropout,), TICKET.seed, TICKET.devices, TICKET.run), "handed": None}


def _judged(emission: Any) -> float:
    mark = {"grade": True, "solution": False, "locked": True, "grade_id": "my_dropout_check", "points": 3}
    cell = new_code_cell(CHECK, metadata={"nbgrader": {**mark, "schema_version": 3}}, execution_count=1)
    cell.outputs = [new_output("display_data", data={EMISSION_TYPE: emission})]
    notebook = new_notebook(cells=[cell])
    (judgement,) = judge_notebook(notebook, TICKET)
    nbformat.validate(notebook)
    points = determine_grade(cell)[0]
    assert points == judgement.points and 0 <= points <= 3
    return points


def test_a_right_emission_is_worth_everything() -> None:
    assert _judged(_right_emission()) == 3


def _framed(records: Any, blob: bytes) -> bytes:
    text = json.dumps(records).encode()
    return len(text).to_bytes(8, "big") + text + blob


def test_a_damaged_emission_is_judged_within_bounds() -> None:
    """The fields around it, the records inside it, the description of its tensors, and the bytes themselves."""
    right = _right_emission()
    data = base64.b64decode(right["records"]["cpu"])
    length = int.from_bytes(data[:8], "big")
    records, blob = json.loads(data[8 : 8 + length]), data[8 + length :]
    header_length = int.from_bytes(blob[:8], "little")
    header, body = json.loads(blob[8 : 8 + header_length]), blob[8 + header_length :]

    def with_header(value: Any) -> bytes:
        text = json.dumps(value).encode()
        return _framed(records, len(text).to_bytes(8, "little") + text + body)

    inside = (
        damaged(records).map(lambda value: _framed(value, blob))
        | damaged(header).map(with_header)
        | st.tuples(st.integers(0, len(data)), st.binary(max_size=9), st.integers(0, 9)).map(
            lambda cut: data[: cut[0]] + cut[1] + data[cut[0] + cut[2] :]
        )
    )

    @bounded
    @given(
        damaged(right)
        | inside.map(lambda made: {**right, "records": {"cpu": base64.b64encode(made).decode()}})
        | ANYTHING
    )
    def holds(emission: Any) -> None:
        _judged(emission)

    holds()


def test_bytes_give_records_or_one_error() -> None:
    @bounded
    @given(st.binary(max_size=300) | st.tuples(ANYTHING, st.binary(max_size=40)).map(lambda two: _framed(*two)))
    def holds(data: bytes) -> None:
        try:
            unpack(data)
        except TransportError as error:
            assert str(error).endswith(".") and "\n" not in str(error)

    holds()


class _Run:
    """Stands for a submission's process that answers each cell with messages of its own."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        self.usage: dict[str, Any] = {}

    def execute(self, source: str, name: str, environment: Any, receive: Callable, forget: Any) -> Ending:
        for message in self.messages:
            receive(copy.deepcopy(message))
        return Ending(reply=self.messages[-1]["content"] if self.messages else None)


class _Sandbox:
    language_info: dict[str, Any] = {"name": "python"}

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages

    def submission(self, files: Any) -> Any:
        import contextlib

        return contextlib.nullcontext(_Run(self.messages))


KINDS = (
    "stream display_data update_display_data execute_result error clear_output execute_input comm_open comm_msg "
    "comm_close status unknown"
).split()
CONTENT = {
    "name": "stdout",
    "text": "x",
    "data": {"text/plain": "x", "application/json": {"a": 1}},
    "metadata": {},
    "transient": {"display_id": "d"},
    "execution_count": 3,
    "ename": "E",
    "evalue": "v",
    "traceback": ["t"],
    "wait": True,
    "status": "error",
    "comm_id": "c",
    "target_name": "jupyter.widget",
}


def test_any_messages_leave_a_notebook_that_can_be_written() -> None:
    message = st.fixed_dictionaries(
        {
            "type": st.sampled_from(KINDS),
            "content": damaged(CONTENT) | st.dictionaries(st.text(max_size=8), ANYTHING, max_size=3),
            "metadata": st.just({}) | st.dictionaries(st.text(max_size=4), ANYTHING, max_size=2),
        }
    )

    @bounded
    @given(st.lists(message, max_size=5))
    def holds(messages: list[dict[str, Any]]) -> None:
        notebook: NotebookNode = new_notebook(cells=[new_code_cell("1"), new_code_cell("2")])
        run_cells(notebook, _Sandbox(messages), [], TICKET)  # type: ignore[arg-type]
        nbformat.writes(notebook).encode("utf-8")

    holds()
