"""The tests of the tests: what each probe rejects, by which observation, and what it must accept."""

from __future__ import annotations

import importlib
import re

import pytest
import torch

from autograder import check, evaluate
from autograder.cases import PUBLIC_SEED
from autograder.diagnose import misconception_records
from autograder.exercise import Exercise, Misconception
from autograder.messages import NotSolvedYet
from autograder.registry import exercise_names, load_exercise, load_misconceptions
from autograder.verdict import record_differences

SEEDS = (1, 2, 3, 20, 12345)
MANY_SEEDS = range(100, 120)
# Each evaluation exports twice through torch's compiler, which takes more than half a second.
SLOW = {"make_exportable"}
ALL = [(name, entry) for name in exercise_names() for entry in load_misconceptions(name)]
IDENTIFIERS = [f"{name}-{entry.name}" for name, entry in ALL]


def _right_answers(name: str) -> list[tuple]:
    return importlib.import_module(f"tests.autograder.right_answers.{exercise_names()[name]}.{name}").right_answers


RIGHT = [(name, parts) for name in exercise_names() for parts in _right_answers(name)]
RIGHT_IDENTIFIERS = [f"{name}-{parts[0].__name__}" for name, parts in RIGHT]


@pytest.fixture(params=list(exercise_names()))
def exercise(request: pytest.FixtureRequest) -> Exercise:
    """Each exercise of the course in turn."""
    return load_exercise(request.param)


@pytest.mark.parametrize(("name", "entry"), ALL, ids=IDENTIFIERS)
def test_each_misconception_is_rejected_by_its_own_observation(name: str, entry: Misconception) -> None:
    for seed in (PUBLIC_SEED, *SEEDS):
        verdict = evaluate(name, *entry.parts, seed=seed, device="cpu")
        assert verdict.problem is None
        assert not verdict.passed and verdict.score < 1
        assert entry.rejected_by in verdict.differing


@pytest.mark.parametrize(("name", "entry"), ALL, ids=IDENTIFIERS)
def test_each_misconception_is_diagnosed_as_itself(name: str, entry: Misconception) -> None:
    for seed in (PUBLIC_SEED, *SEEDS):
        verdict = evaluate(name, *entry.parts, seed=seed, device="cpu")
        assert (verdict.misconception, verdict.question) == (entry.name, entry.question)


def test_no_two_misconceptions_look_alike(exercise: Exercise) -> None:
    shown = misconception_records(exercise.name, PUBLIC_SEED, "cpu")
    for index, (one, records) in enumerate(shown):
        for other, others in shown[index + 1 :]:
            pairs = list(zip(records, others, strict=True))
            alike = all(
                not record_differences(a, b) and len(a.observations) == len(b.observations) and a.stop == b.stop
                for a, b in pairs
            )
            assert not alike, f"{one.name} and {other.name} cannot be told apart"


def test_every_exercise_is_complete(exercise: Exercise) -> None:
    entries = load_misconceptions(exercise.name)
    assert len(entries) >= 6
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert entry.question.endswith("?") and entry.summary and entry.read
        # A question leads to the difference; a line to copy would end the search.
        assert not re.search(r"`[^`]*[^=!<>]=[^=][^`]*`", entry.question), f"{entry.name} shows code to copy"
    card = exercise.card
    assert all((card.goal, card.may_change, card.specification, card.prerequisites))
    assert 1 <= card.difficulty <= 5 and 1 <= card.importance <= 5 and 5 <= card.minutes <= 90
    assert exercise.points > 0
    assert "?" in exercise.hints.question and "..." in exercise.hints.template


@pytest.mark.parametrize(("name", "parts"), RIGHT, ids=RIGHT_IDENTIFIERS)
def test_right_answers_pass_however_they_are_written(name: str, parts: tuple) -> None:
    for seed in (PUBLIC_SEED, *(MANY_SEEDS[:5] if name in SLOW else MANY_SEEDS)):
        verdict = evaluate(name, *parts, seed=seed, device="cpu")
        assert verdict.problem is None
        assert verdict.differences == []
        assert verdict.passed and verdict.score == 1.0 and verdict.misconception is None


def test_three_right_answers_are_tried(exercise: Exercise) -> None:
    assert len(_right_answers(exercise.name)) >= 3


def test_a_stub_is_unsolved_and_names_its_exercise(exercise: Exercise) -> None:
    def stub(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(exercise.name)

    class Stub(torch.nn.Module):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__()
            stub()

    parts = [Stub if exercise.kind == "class" else stub for _ in exercise.parts]
    verdict = evaluate(exercise.name, *parts)
    assert verdict.unsolved and not verdict.passed and verdict.score == 0
    with pytest.raises(NotSolvedYet, match=f"^{exercise.name} is still to be written"):
        check(exercise.name, *parts)


@pytest.mark.gpu
def test_right_answers_pass_on_the_gpu(exercise: Exercise) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    for parts in _right_answers(exercise.name):
        verdict = evaluate(exercise.name, *parts, device="cuda")
        assert verdict.differences == [] and verdict.passed
