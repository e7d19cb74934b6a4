"""Taking the answers out of the warm parent leaves every probe able to observe, and no reference behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.evaluation import weigh
from autograder.grading.grade import one_thread
from autograder.grading.judge import read_emission
from autograder.grading.ticket import Ticket
from autograder.registry import exercise_names, load_exercise

SLOW = {"make_exportable", "is_trace_faithful", "export_round_trip"}
TICKET = Ticket(91)

# Another process forgets, and observes a right answer of each exercise afterwards.
_OBSERVING = """
import importlib, json, sys, types
import torch
torch.set_num_threads(1)
from autograder.checking import emission_of
from autograder.grading.forget import forget_answers
from autograder.registry import exercise_names, load_exercise
names = json.loads(sys.argv[1])
answers = {name: importlib.import_module(f"tests.autograder.right_answers.{exercise_names()[name]}.{name}").right_answers[0]
           for name in names}
references = {name: load_exercise(name).reference for name in names}
forget_answers(names)
found = {}
for name in names:
    exercise = load_exercise(name)
    home = {id(value) for module in list(sys.modules.values()) if getattr(module, "__name__", "").startswith("autograder.exercises")
            for value in vars(module).values()}
    left = [each.__name__ for each in references[name] if id(each) in home and each.__module__.startswith("autograder.")]
    found[name] = {"left": left, "reference": len(exercise.reference),
                   "emission": emission_of(exercise, answers[name], 91, ["cpu"], sys.argv[2])}
print(json.dumps(found))
"""
# A probe or its cases are built with it.
NEEDED = {"transformer_block": ["_Reference"]}


@pytest.fixture(scope="module")
def forgotten(root: Path) -> dict[str, dict]:
    """What is left of each exercise, and what its probe saw of a right answer."""
    names = [name for name in exercise_names() if name not in SLOW]
    done = subprocess.run(
        [sys.executable, "-c", _OBSERVING, json.dumps(names), TICKET.run],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [name for name in exercise_names() if name not in SLOW])
def test_what_is_left_of_an_exercise_has_no_reference(forgotten: dict, name: str) -> None:
    assert forgotten[name]["reference"] == 0
    assert forgotten[name]["left"] == NEEDED.get(name, [])


@pytest.mark.parametrize("name", [name for name in exercise_names() if name not in SLOW])
def test_a_right_answer_is_observed_as_before(forgotten: dict, name: str) -> None:
    exercise = load_exercise(name)
    with one_thread():
        verdict = weigh(exercise, read_emission(forgotten[name]["emission"], exercise, TICKET), TICKET.seed)
    assert verdict.passed, verdict.differences[:3] or verdict.problem
