"""Notebooks whose structure was changed, by accident or on purpose: cells, marks, metadata, outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.grading.ticket import EMISSION_TYPE
from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import NOTHING, Case, marked, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}
_EMPTY = "class MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n        raise RuntimeError\n"


def _changed(
    name: str, why: str, change: Callable[[NotebookNode], Any], scores: dict | None = None, **more: Any
) -> Case:
    return Case(name, why, scored() if scores is None else scores, change=change, **more)


def _mark(cell: str, **values: Any) -> Callable[[NotebookNode], None]:
    """Return a change of a cell's nbgrader metadata; None removes an entry."""

    def change(notebook: NotebookNode) -> None:
        mark = marked(notebook, cell).metadata.nbgrader
        for key, value in values.items():
            mark.pop(key, None)
            if value is not None:
                mark[key] = value

    return change


def _set_mark(cell: str, value: Any) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        marked(notebook, cell).metadata["nbgrader"] = value

    return change


def _source(cell: str, text: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        marked(notebook, cell).source = text

    return change


def _retyped(cell: str, kind: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        found = marked(notebook, cell)
        found.cell_type = kind
        found.pop("outputs", None)
        found.pop("execution_count", None)

    return change


def _removed(*names: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.cells = [
            cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") not in names
        ]

    return change


def _twice(name: str, text: str | None = None) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        found = marked(notebook, name)
        copied = new_code_cell(found.source if text is None else text, metadata=dict(found.metadata))
        notebook.cells.insert(notebook.cells.index(found), copied)

    return change


def _moved(name: str, place: int) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        found = marked(notebook, name)
        notebook.cells.remove(found)
        notebook.cells.insert(place if place >= 0 else len(notebook.cells), found)

    return change


def _outputs(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.execution_count = 1
            cell.outputs = [
                new_output(
                    "execute_result", data={"text/plain": cell.metadata.nbgrader.points and "4.0"}, execution_count=1
                ),
                new_output("display_data", data={EMISSION_TYPE: {"run": "x"}, "text/plain": "4.0"}),
            ]
    marked(notebook, "my_dropout").source = _EMPTY


def _added(cell: NotebookNode, place: int = -1) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.insert(place if place >= 0 else len(notebook.cells), cell)


def _graded_cell(name: str, source: str, **mark: Any) -> NotebookNode:
    settings = {"grade": True, "solution": False, "locked": True, "points": 100, "grade_id": name, "schema_version": 3}
    return new_code_cell(source, metadata={"nbgrader": {**settings, **mark}})


def _reversed(notebook: NotebookNode) -> None:
    notebook.cells.reverse()


def _shared_ids(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell["id"] = "same"


def _kernel(**spec: Any) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.metadata["kernelspec"] = spec

    return change


def _metadata(**values: Any) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.metadata.update(values)


def _all_tags(*tags: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        for cell in notebook.cells:
            cell.metadata["tags"] = list(tags)

    return change


def _colab(notebook: NotebookNode) -> None:
    notebook.metadata["colab"] = {"provenance": [], "toc_visible": True}
    notebook.metadata["accelerator"] = "GPU"
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    notebook.metadata.pop("language_info", None)
    for number, cell in enumerate(notebook.cells):
        cell.metadata["id"] = f"Xy{number}"
        cell.metadata["colab"] = {"base_uri": "https://localhost:8080/"}
        cell.metadata["executionInfo"] = {"status": "ok", "user": {"displayName": "x"}, "elapsed": 3}
        cell.metadata["outputId"] = "b7"
    first = notebook.cells[0]
    notebook.cells.insert(
        0, new_code_cell("!pip install -q torch\nfrom google.colab import drive\ndrive.mount('/content')")
    )
    assert first in notebook.cells


CHECK, ANSWER = "my_dropout_check", "my_dropout"
_PUT_BACK = "What a cell is for, and its text if it is locked, come from the release."

CASES = [
    _changed("check_deleted", "A missing check is put back after its answer.", _removed(CHECK)),
    _changed("all_checks_deleted", "The same for all.", _removed(*(f"{n}_check" for n in NOTHING))),
    _changed("answer_deleted", "Nothing was answered.", _removed(ANSWER), scored(my_dropout=0)),
    _changed("everything_deleted", "Nothing was answered.", lambda notebook: notebook.cells.clear(), NOTHING),
    _changed("check_edited_away", _PUT_BACK, _source(CHECK, "pass")),
    _changed("check_edited_into_points", _PUT_BACK, _source(CHECK, "3.0")),
    _changed(
        "check_of_something_else",
        _PUT_BACK,
        lambda notebook: (
            _source(CHECK, 'check("my_batchnorm", MyBatchNorm)')(notebook),
            _source(ANSWER, _EMPTY)(notebook),
        ),
        scored(my_dropout=0),
    ),
    _changed("check_duplicated", "The last one counts, as in nbgrader; the others are ordinary cells.", _twice(CHECK)),
    _changed("check_duplicated_and_edited", "The same.", _twice(CHECK, "check = lambda *parts: 3.0")),
    _changed("answer_duplicated", "The last one counts, as when the notebook runs.", _twice(ANSWER, _EMPTY)),
    _changed("answers_overwritten_below", "The same.", _twice(ANSWER, RIGHT_DROPOUT)),
    _changed("check_moved_to_the_front", "It runs before there is an answer.", _moved(CHECK, 0), scored(my_dropout=0)),
    _changed("check_moved_to_the_end", "The answer is there by then.", _moved(CHECK, -1)),
    _changed("cells_in_reverse_order", "Nothing is there when it is asked for.", _reversed, NOTHING),
    _changed("check_retyped_as_markdown", _PUT_BACK, _retyped(CHECK, "markdown")),
    _changed("check_retyped_as_raw", _PUT_BACK, _retyped(CHECK, "raw")),
    _changed("answer_retyped_as_markdown", _PUT_BACK, _retyped(ANSWER, "markdown")),
    _changed("check_unlocked", _PUT_BACK, lambda n: (_mark(CHECK, locked=False)(n), _source(CHECK, "3.0")(n))),
    _changed("check_no_longer_graded", _PUT_BACK, _mark(CHECK, grade=False)),
    _changed("check_made_a_solution", _PUT_BACK, _mark(CHECK, solution=True, locked=False)),
    _changed("check_made_a_task", _PUT_BACK, _mark(CHECK, task=True, grade=False)),
    _changed("check_worth_a_hundred", _PUT_BACK, _mark(CHECK, points=100)),
    _changed("check_worth_less_than_nothing", _PUT_BACK, _mark(CHECK, points=-5)),
    _changed("check_worth_a_word", _PUT_BACK, _mark(CHECK, points="many")),
    _changed("check_without_points", _PUT_BACK, _mark(CHECK, points=None)),
    _changed("check_of_another_schema", _PUT_BACK, _mark(CHECK, schema_version=99)),
    _changed("check_of_an_old_schema", _PUT_BACK, _mark(CHECK, schema_version=1)),
    _changed("check_without_a_schema", _PUT_BACK, _mark(CHECK, schema_version=None, cell_type=None, checksum=None)),
    _changed(
        "check_of_another_name", "It is put back; the renamed one is an ordinary cell.", _mark(CHECK, grade_id="bonus")
    ),
    _changed("check_without_a_name", "The same.", _mark(CHECK, grade_id=None)),
    _changed("check_named_by_a_list", "The same.", _mark(CHECK, grade_id=["my_dropout_check"])),
    _changed("mark_that_is_a_list", "The same.", _set_mark(CHECK, [1, 2])),
    _changed("mark_that_is_a_text", "The same.", _set_mark(CHECK, "grade")),
    _changed("mark_that_is_empty", "The same.", _set_mark(CHECK, {})),
    _changed("answer_without_a_mark", "It is an ordinary cell, and runs.", _set_mark(ANSWER, {})),
    _changed("answer_made_a_check", _PUT_BACK, _mark(ANSWER, grade=True, points=50, solution=False, locked=True)),
    _changed(
        "answer_called_as_its_check",
        "Two cells of one name: the last one is the check, and there is an answer still.",
        _mark(ANSWER, grade_id=CHECK),
    ),
    _changed(
        "a_check_of_ones_own_worth_a_hundred",
        "A cell that was marked by hand is an ordinary one.",
        _added(_graded_cell("bonus", "100.0")),
    ),
    _changed(
        "a_check_of_ones_own_that_calls_check",
        "The same.",
        _added(_graded_cell("bonus_check", 'check("my_dropout", MyDropout)')),
    ),
    _changed(
        "a_check_of_ones_own_without_a_name",
        "The same.",
        _added(new_code_cell("100.0", metadata={"nbgrader": {"grade": True, "points": 100, "solution": False}})),
    ),
    _changed(
        "outputs_of_the_judge_written_in", "Outputs are cleared before anything runs.", _outputs, scored(my_dropout=0)
    ),
    _changed(
        "another_kernel", "The released kernel is used.", _kernel(name="bash", display_name="Bash", language="bash")
    ),
    _changed("a_kernel_that_is_a_command", "The same.", _kernel(name="../../bin/sh -c", display_name="x")),
    _changed("no_kernel", "The same.", lambda notebook: notebook.metadata.pop("kernelspec", None)),
    _changed("another_language", "The same.", _metadata(language_info={"name": "r", "version": 4})),
    _changed(
        "metadata_of_widgets",
        "It is no part of what runs.",
        _metadata(widgets={"x": {"state": {}, "version_major": 2}}),
    ),
    _changed("executed_in_colab", "Its metadata is no part of what runs.", _colab),
    _changed(
        "tagged_to_be_skipped",
        "Tags steer nothing here.",
        _all_tags("skip-execution", "raises-exception", "remove_cell"),
    ),
    _changed("one_id_for_all_cells", "Cells are told apart by their marks.", _shared_ids),
    _changed(
        "ten_thousand_empty_cells",
        "Empty cells take no time.",
        lambda notebook: notebook.cells.extend(new_code_cell("") for _ in range(10_000)),
    ),
    _changed(
        "a_cell_of_a_million_lines",
        "A long text is a long text.",
        _added(new_markdown_cell("line\n" * 1_000_000), 0),
    ),
    _changed(
        "hidden_state_for_the_next",
        "Each submission has a process of its own.",
        _added(new_code_cell("import builtins, torch\nbuiltins.check = torch.check = nn.check = 5\nnn.Dropout = None")),
    ),
]


class TestNotebooksChanged(Family):
    """The released cells count, in the order in which the notebook has them."""
