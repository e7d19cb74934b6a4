"""The judge scores what was observed, whatever the student's process says about its score."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import jupytext
import pytest
import torch
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.utils import determine_grade
from torch import nn

from autograder import evaluate
from autograder.checking import emission_of
from autograder.grading.judge import checked_exercise, judge_notebook
from autograder.grading.own_code import handed_over
from autograder.grading.ticket import EMISSION_TYPE, Ticket
from autograder.registry import exercise_names, load_exercise
from tests.grading.answers import BIASED_BATCHNORM, RIGHT_BATCHNORM

TICKET = Ticket(77)
CHECK = 'check("my_batchnorm", MyBatchNorm)'
IMPORTS = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"


def _emission(source: str, ticket: Ticket = TICKET) -> dict:
    namespace: dict = {}
    exec(IMPORTS + source, namespace)
    exercise = load_exercise("my_batchnorm")
    return emission_of(exercise, (namespace["MyBatchNorm"],), ticket.seed, ticket.devices, ticket.run)


def _display(emission: object) -> NotebookNode:
    return new_output("display_data", data={EMISSION_TYPE: emission})


def _notebook(source: str, *outputs: NotebookNode, executed: bool = True) -> NotebookNode:
    mark = {"grade": True, "solution": False, "locked": True, "grade_id": "my_batchnorm_check", "points": 4}
    test = new_code_cell(CHECK, metadata={"nbgrader": {**mark, "schema_version": 3}}, outputs=list(outputs))
    test.execution_count = 3 if executed else None
    return new_notebook(cells=[new_code_cell(IMPORTS), new_code_cell(source), test])


def _score(notebook: NotebookNode) -> float:
    """What nbgrader reads from the check cell."""
    return determine_grade(notebook.cells[-1])[0]


def _text(notebook: NotebookNode) -> str:
    return "\n".join(output.data["text/plain"] for output in notebook.cells[-1].outputs if "data" in output)


@pytest.fixture(scope="module")
def right() -> dict:
    return _emission(RIGHT_BATCHNORM)


def test_a_right_answer_earns_every_point(right: dict) -> None:
    notebook = _notebook(RIGHT_BATCHNORM, _display(right))
    (judgement,) = judge_notebook(notebook, TICKET)
    assert judgement.points == judgement.maximum == _score(notebook) == 4
    assert "agree with torch, 4.00 of 4 points" in _text(notebook)
    assert not any(EMISSION_TYPE in output.get("data", {}) for output in notebook.cells[-1].outputs)


def test_a_wrong_answer_earns_what_evaluate_says_and_is_diagnosed() -> None:
    notebook = _notebook(BIASED_BATCHNORM, _display(_emission(BIASED_BATCHNORM)))
    (judgement,) = judge_notebook(notebook, TICKET)
    namespace = {"torch": torch, "nn": nn}
    exec(BIASED_BATCHNORM, namespace)
    verdict = evaluate("my_batchnorm", namespace["MyBatchNorm"], seed=77, device="cpu")
    assert judgement.points == _score(notebook) == round(verdict.score * 4, 2) < 4
    assert judgement.misconception == "biased_running_variance"
    assert verdict.question.split("`")[0][:30] in _text(notebook)


def test_another_seed_or_run_is_refused(right: dict) -> None:
    for ticket in (Ticket(78, run=TICKET.run), Ticket(77)):
        notebook = _notebook(RIGHT_BATCHNORM, _display(right))
        (judgement,) = judge_notebook(notebook, ticket)
        assert judgement.points == _score(notebook) == 0
        assert judgement.reason in _text(notebook)


FORGED = {
    "nothing": [],
    "twice": ["right", "right"],
    "a float": [4.0],
    "an empty emission": [{}],
    "another exercise": [{"exercise": "my_dropout"}],
    "a number as problem": [{"problem": 3}],
    "a list as problem": [{"problem": ["x"]}],
    "many lines as handed": [{"handed": "a\nb"}],
    "no devices": [{"records": {}}],
    "another device": [{"records": {"cuda": ""}}],
    "no base64": [{"records": {"cpu": "***"}}],
    "a number as records": [{"records": {"cpu": 5}}],
    "no records in it": [{"records": {"cpu": "AAAAAAAAAAJbXQIAAAAAAAAAe30="}}],
    "one field more": [{"score": 1.0}],
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_emission_scores_nothing_and_says_why(forged: list, right: dict) -> None:
    displayed = []
    for entry in forged:
        changed = copy.deepcopy(right)
        if isinstance(entry, dict):
            changed = {**changed, **entry} if entry else {}
        elif entry != "right":
            changed = entry
        displayed.append(_display(changed))
    notebook = _notebook(RIGHT_BATCHNORM, *displayed)
    (judgement,) = judge_notebook(notebook, TICKET)
    assert judgement.points == _score(notebook) == 0
    assert judgement.reason and judgement.reason.endswith(".") and judgement.reason in _text(notebook)


@pytest.mark.parametrize(
    "outputs",
    [
        [new_output("execute_result", data={"text/plain": "4.0"}, execution_count=3)],
        [new_output("execute_result", data={"text/plain": "99"}, execution_count=3)],
        [new_output("execute_result", data={"text/plain": "passed"}, execution_count=3)],
        [new_output("stream", name="stdout", text="4.0")],
        [],
    ],
)
def test_a_cell_cannot_write_its_own_score(outputs: list) -> None:
    notebook = _notebook(RIGHT_BATCHNORM, *outputs)
    assert judge_notebook(notebook, TICKET)[0].points == _score(notebook) == 0


def test_a_cell_that_was_never_run_scores_nothing() -> None:
    notebook = _notebook(RIGHT_BATCHNORM, executed=False)
    assert judge_notebook(notebook, TICKET, "The kernel died in cell 2.")[0].points == _score(notebook) == 0
    assert "The kernel died in cell 2." in _text(notebook)


def test_a_check_that_ended_with_an_error_scores_nothing(right: dict) -> None:
    error = new_output("error", ename="NameError", evalue="name 'MyBatchNorm' is not defined", traceback=["NameError"])
    for outputs in ([error], [_display(right), error]):
        notebook = _notebook(RIGHT_BATCHNORM, *outputs)
        assert judge_notebook(notebook, TICKET)[0].points == _score(notebook) == 0
        assert any(output.output_type == "error" for output in notebook.cells[-1].outputs)


def test_a_warning_costs_nothing(right: dict) -> None:
    notebook = _notebook(RIGHT_BATCHNORM, new_output("stream", name="stderr", text="careful"), _display(right))
    assert judge_notebook(notebook, TICKET)[0].points == _score(notebook) == 4


@pytest.mark.parametrize("source", ["MyBatchNorm = nn.BatchNorm1d", "class MyBatchNorm(nn.BatchNorm1d): pass"])
def test_torchs_own_layer_scores_nothing_even_when_the_process_keeps_silent(source: str) -> None:
    emission = {**_emission(source), "handed": None}
    notebook = _notebook(source, _display(emission))
    (judgement,) = judge_notebook(notebook, TICKET)
    assert judgement.points == _score(notebook) == 0
    assert "asks for your own code" in judgement.reason and "asks for your own code" in _text(notebook)


def test_a_hidden_call_that_the_process_reports_scores_nothing() -> None:
    hidden = "        vars(F)['mron_hctab'[::-1]](x, None, None, training=True)\n        channels_last ="
    source = RIGHT_BATCHNORM.replace("        channels_last =", hidden, 1)
    assert handed_over(load_exercise("my_batchnorm"), [IMPORTS, source]) is None
    notebook = _notebook(source, _display(_emission(source)))
    assert judge_notebook(notebook, TICKET)[0].points == _score(notebook) == 0
    assert "hands its work to" in _text(notebook)


def test_an_emission_outside_a_check_is_removed_and_counts_nowhere(right: dict) -> None:
    notebook = _notebook(RIGHT_BATCHNORM)
    notebook.cells[1].outputs = [_display(right)]
    assert judge_notebook(notebook, TICKET)[0].points == _score(notebook) == 0
    assert notebook.cells[1].outputs == []


def test_everything_from_the_student_is_escaped() -> None:
    source = RIGHT_BATCHNORM.replace(
        "out = (channels_last", 'raise ValueError("<script>x</script>")\n        out = (channels_last'
    )
    notebook = _notebook(source, _display(_emission(source)))
    judge_notebook(notebook, TICKET)
    page = next(
        output.data["text/html"] for output in notebook.cells[-1].outputs if "text/html" in output.get("data", {})
    )
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_graded_cells_without_a_check_are_left_to_nbgrader() -> None:
    notebook = _notebook(RIGHT_BATCHNORM)
    notebook.cells[-1].source = "assert True"
    assert judge_notebook(notebook, TICKET) == []
    assert _score(notebook) == 4
    notebook.cells[-1].execution_count = None
    assert judge_notebook(notebook, TICKET, "Out of time.")[0].points == _score(notebook) == 0


def test_the_solutions_are_the_students_own(root: Path, chapter: str) -> None:
    sources, seen = [], 0
    for cell in jupytext.read(root / "solutions" / chapter / f"{chapter}.py").cells:
        if cell.cell_type != "code":
            continue
        if name := checked_exercise(cell):
            assert handed_over(load_exercise(name), sources) is None
            seen += 1
        sources.append(cell.source)
    assert seen == sum(folder == chapter for folder in exercise_names().values())


def test_the_judge_module_never_runs_text() -> None:
    import autograder.grading.judge as judge
    import autograder.grading.own_code as own_code
    import autograder.grading.transport as transport

    for module in (judge, own_code, transport):
        names = {
            node.id for node in ast.walk(ast.parse(Path(module.__file__).read_text())) if isinstance(node, ast.Name)
        }
        assert not names & {"eval", "exec", "compile", "pickle", "__import__"}
