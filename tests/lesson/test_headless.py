"""The cells without a reader: executed by nbclient, saved, exported."""

from __future__ import annotations

import warnings

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.lesson.conftest import SETUP_CELL

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELLS = [SETUP_CELL, "predict('ch03-expect')", "quiz('ch03-persistent')", "recall('ch03')"]


def executed(*cells: str, keep_widget_state: bool = True) -> nbformat.NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=120, store_widget_state=keep_widget_state).execute()
    return notebook


def without_model_ids(notebook: nbformat.NotebookNode) -> list[list[dict]]:
    outputs = [[dict(output) for output in cell.outputs] for cell in notebook.cells]
    for output in (each for cell in outputs for each in cell):
        if WIDGET_VIEW in output["data"]:
            output["data"] = {**output["data"], WIDGET_VIEW: {**output["data"][WIDGET_VIEW], "model_id": "…"}}
    return outputs


@pytest.fixture(scope="module")
def exported_words() -> list[str]:
    return [
        "After one batch whose mean is 2.0",
        "momentum is the share of the old value",
        "Where is the mask",
        "Once",
    ]


def test_a_cell_shows_a_readable_question_and_a_panel_and_nothing_else(kernel_environment: None) -> None:
    notebook = executed(*CELLS)
    assert notebook.cells[0].outputs == []
    for cell in notebook.cells[1:]:
        readable, live = cell.outputs
        assert set(readable.data) == {"text/plain", "text/html"}
        assert set(live.data) == {"text/plain", WIDGET_VIEW}
        assert live.data["text/plain"] == "(Run this cell in JupyterLab to answer here.)"
    words = notebook.cells[1].outputs[0].data["text/plain"]
    assert words.startswith("Predict: a buffer after one step\n\nThe layer is in training mode, `momentum=0.1`.")
    assert "    print(layer.running_mean)\n\n  A. tensor([1.8]): momentum" in words


def test_two_executions_differ_in_model_ids_only(kernel_environment: None) -> None:
    first, second = executed(*CELLS), executed(*CELLS)
    assert without_model_ids(first) == without_model_ids(second)


def test_an_execution_leaves_no_progress(kernel_environment: None, progress_file) -> None:
    executed(*CELLS)
    assert not progress_file.exists()


@pytest.mark.parametrize("keep_widget_state", [True, False])
def test_an_exported_page_can_be_read(
    kernel_environment: None, exported_words: list[str], keep_widget_state: bool
) -> None:
    notebook = executed(*CELLS, keep_widget_state=keep_widget_state)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nbconvert warns of an output that it cannot show
        page, _ = HTMLExporter().from_notebook_node(notebook)
    body = page[page.index("<body") :]
    # Widget state sits in a script and is not read by anybody.
    visible = "".join(part.split("</script>")[-1] for part in body.split("<script"))
    for words in exported_words:
        assert words in visible
    assert ("Run this cell in JupyterLab to answer here." in visible) is not keep_widget_state
    assert "The old 0.0 keeps" not in page


def test_without_ipywidgets_the_question_can_still_be_read(kernel_environment: None) -> None:
    hide = "import sys\nsys.modules['ipywidgets'] = None\n"
    notebook = executed(hide + SETUP_CELL, "quiz('ch03-persistent')")
    (readable,) = notebook.cells[1].outputs
    assert "non-persistent buffers" in readable.data["text/html"]


def test_while_a_class_is_graded_nothing_waits_for_a_reader(kernel_environment: None) -> None:
    grading = "import os\nos.environ['NBGRADER_EXECUTION'] = 'autograde'\n"  # As nbgrader sets it.
    figure = "from simulations import BatchNormInternals\nBatchNormInternals()"
    notebook = executed(grading + SETUP_CELL, "predict('ch03-expect')", figure)
    for cell in notebook.cells[1:]:
        (readable,) = cell.outputs
        assert set(readable.data) == {"text/plain", "text/html"}
    assert "widgets" not in notebook.metadata


def test_a_wrong_id_is_one_sentence_in_the_notebook(kernel_environment: None) -> None:
    wrong = "try:\n    quiz('ch03-persist')\nexcept Exception:\n    get_ipython().showtraceback()"
    (shown,) = executed(SETUP_CELL, wrong).cells[1].outputs
    assert shown.traceback == ["UsageError: No question has the id 'ch03-persist'. Did you mean 'ch03-persistent'?"]


def test_the_package_hands_out_the_three_functions(kernel_environment: None) -> None:
    notebook = executed("from autograder import predict, quiz, recall\nprint(predict.__name__, recall.__name__)")
    assert notebook.cells[0].outputs[0].text == "predict recall\n"


def test_a_panel_answers_inside_a_kernel(kernel_environment: None) -> None:
    click = (
        "from autograder.lesson import panel, progress\n"
        "asked = panel.build([questions.load_question('ch03-persistent')]).questions[0]\n"
        "asked.options.value = 1\nasked.answer_button.click()\n"
        "print(progress.first_answers())"
    )
    (printed,) = executed(SETUP_CELL, click).cells[1].outputs
    assert printed.text == "{'ch03-persistent': {'option': 1, 'right': False}}\n"
