"""What a feedback page leaves out, beyond what a whole class's pages are searched for elsewhere."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from autograder.grading.feedback import VerdictsFirst

VISIBLE = "assert double(2) == 4"
HIDDEN = "assert double(-3) == -6, 'a negative number'"
ENDINGS = {"closed": "### END HIDDEN TESTS\n", "open": "", "reversed": "### END HIDDEN TESTS\n### BEGIN HIDDEN TESTS\n"}


def _page(source: str) -> str:
    """What is left of a test cell that an instructor wrote and that ended with an error, with its source quoted."""
    marks = {"grade_id": "double_check", "grade": True, "solution": False, "points": 2, "score": 0.0}
    traceback = [f"----> 2 {HIDDEN}", "AssertionError: a negative number"]
    error = new_output("error", ename="AssertionError", evalue="a negative number", traceback=traceback)
    cell = new_code_cell(source, outputs=[error], metadata={"nbgrader": marks})
    notebook, _ = VerdictsFirst().preprocess(new_notebook(cells=[cell]), {"nbgrader": {}})
    return f"{notebook.cells[1].source}\n{notebook.cells[1].outputs}"


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_hidden_tests_of_an_instructor_stay_hidden(ending: str) -> None:
    page = _page(f"{VISIBLE}\n### BEGIN HIDDEN TESTS\n{HIDDEN}\n{ending}")
    assert VISIBLE in page and "AssertionError: a negative number" in page
    assert "double(-3)" not in page


def test_a_test_that_is_not_hidden_keeps_its_traceback() -> None:
    assert "----> 2 assert double(-3)" in _page(f"{VISIBLE}\n{HIDDEN}")
