"""What ``check`` does in a notebook: a report as display data, one sentence as the error, points while grading."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from autograder import check, evaluate
from autograder.authoring.build import source_file
from autograder.exercise import Exercise
from autograder.grading.ticket import EMISSION_TYPE, Ticket, grading_seed
from autograder.messages import CheckFailed
from autograder.observe import Stop
from autograder.registry import exercise_names, load_exercise, load_misconceptions
from autograder.verdict import stop_words
from tests.conftest import ROOT

NAME = "my_dropout"
TICKET = Ticket(seed=7)
RIGHT = load_misconceptions(NAME)[0].parts[0].__mro__[1]
NO_SCALING = next(entry for entry in load_misconceptions(NAME) if entry.name == "no_scaling")


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A real IPython shell, as a notebook's kernel has one."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def _run(shell: InteractiveShell, cell: str, **names: object) -> tuple[object, object]:
    shell.user_ns.update(names, check=check)
    with capture_output() as captured:
        result = shell.run_cell(cell)
    return captured, result


def test_a_right_answer_is_shown_as_html_with_a_text_twin(shell: InteractiveShell) -> None:
    captured, result = _run(shell, f'check("{NAME}", MyDropout)', MyDropout=RIGHT)
    (output,) = captured.outputs
    assert result.success and result.result is None and captured.stdout == ""
    assert set(output.data) == {"text/plain", "text/html"}
    assert output.data["text/plain"].startswith("✓ my_dropout: public checks 15 of 15 agree with torch")
    assert "Grading repeats these checks on other shapes and seeds." in output.data["text/html"]


def test_a_wrong_answer_ends_in_one_sentence_without_a_traceback(shell: InteractiveShell) -> None:
    captured, result = _run(shell, f'check("{NAME}", MyDropout)', MyDropout=NO_SCALING.parts[0])
    assert isinstance(result.error_in_exec, CheckFailed)
    assert captured.stdout.strip().startswith("CheckFailed: my_dropout: public checks")
    assert len(captured.stdout.strip().splitlines()) == 1
    page = captured.outputs[0].data["text/html"]
    assert NO_SCALING.question.split("`")[0][:30] in page and "To read:" in page


def test_what_a_student_wrote_cannot_become_markup(shell: InteractiveShell) -> None:
    class MyDropout(RIGHT):
        def forward(self, x):
            raise RuntimeError("<script>alert(1)</script>")

    captured, _ = _run(shell, f'check("{NAME}", MyDropout)', MyDropout=MyDropout)
    page = captured.outputs[0].data["text/html"]
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_the_students_line_is_that_of_the_cell(shell: InteractiveShell) -> None:
    cell = (
        "from torch import nn\nclass MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n"
        f"        super().__init__()\n    def forward(self, x):\n        return x * self.p\ncheck('{NAME}', MyDropout)"
    )
    captured, _ = _run(shell, cell)
    assert "in your line 6: `return x * self.p`" in captured.outputs[0].data["text/plain"]


def test_a_difference_is_one_sentence_that_says_nothing_twice() -> None:
    (root_only,) = [entry for entry in load_misconceptions("find_orphans") if entry.name == "root_only"]
    with pytest.raises(CheckFailed, match=r"First difference: orphans of registered children \(cpu\): block"):
        check("find_orphans", *root_only.parts)
    assert stop_words(Stop("RuntimeError", "it went wrong.", 4, "f(x)")) == (
        "stopped with RuntimeError: it went wrong in your line 4: `f(x)`"
    )


def test_while_grading_a_check_only_hands_over_what_it_saw(shell: InteractiveShell, monkeypatch) -> None:
    for variable, value in TICKET.environment().items():
        monkeypatch.setenv(variable, value)
    for part in (RIGHT, NO_SCALING.parts[0]):
        captured, done = _run(shell, f'check("{NAME}", MyDropout)', MyDropout=part)
        assert done.success and done.result is None
        (output,) = captured.outputs
        assert set(output.data) == {EMISSION_TYPE} and output.data[EMISSION_TYPE]["run"] == TICKET.run
    assert not captured.stdout


def test_grading_seeds_differ_from_the_public_one_and_from_each_other() -> None:
    seeds = {grading_seed(text) for text in ("", "0", "a", "b")}
    assert len(seeds) == 4 and 0 not in seeds


def test_a_check_in_another_thread_is_bounded_too() -> None:
    def forward(self, x):
        while True:
            pass

    found = []
    endless = type("MyDropout", (RIGHT,), {"forward": forward})
    thread = threading.Thread(target=lambda: found.append(evaluate(NAME, endless, seconds=0.5)), daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert found and found[0].stop.out_of_time


def test_the_outcome_is_kept_in_the_progress_file(shell: InteractiveShell, monkeypatch, tmp_path) -> None:
    file = tmp_path / "progress.jsonl"
    monkeypatch.setenv("DEEP_FRAMEWORK_MECHANICS_PROGRESS", str(file))
    _run(shell, f'check("{NAME}", MyDropout)', MyDropout=NO_SCALING.parts[0])
    _run(shell, f'check("{NAME}", MyDropout)', MyDropout=RIGHT)
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(entry["kind"], entry["id"], entry["value"]["passed"]) for entry in entries] == [
        ("check", NAME, False),
        ("check", NAME, True),
    ]


@pytest.mark.parametrize("name", list(exercise_names()))
def test_each_place_to_read_is_a_heading_of_the_chapter(name: str) -> None:
    exercise: Exercise = load_exercise(name)
    text = source_file(ROOT, exercise.chapter).read_text(encoding="utf-8")
    headings = {_plain(line) for line in re.findall(r"^# #+ (.+)$", text, re.MULTILINE)}
    for entry in load_misconceptions(name):
        for section in re.findall(r"section (?:on |«)(.+?)»? in this chapter", entry.read):
            assert any(_plain(section) in heading for heading in headings), f"{entry.name}: no heading for {section!r}"


def _plain(text: str) -> str:
    return text.replace("`", "").lower().removeprefix("the ").removeprefix("a ")


def test_a_check_before_its_answer_says_what_to_run(shell: InteractiveShell) -> None:
    from autograder.lesson.unrun import explain_unrun_answers

    explain_unrun_answers()
    shell.user_ns.update(check=check)
    with capture_output() as captured:
        result = shell.run_cell(f'check("{NAME}", MyNeverDefined)', store_history=True)
        other = shell.run_cell("an_ordinary_mistake", store_history=True)
    assert isinstance(result.error_in_exec, NameError) and isinstance(other.error_in_exec, NameError)
    first, _, rest = captured.stdout.partition("\n")
    assert first.startswith(
        "NameError: MyNeverDefined does not exist yet in this kernel. Run the cell with your answer"
    )
    assert "an_ordinary_mistake" in rest and "Traceback" in rest
