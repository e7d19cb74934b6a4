"""What counts as near-identical: a copy in disguise, and neither the template nor the few right ways."""

from __future__ import annotations

import importlib
import inspect
import random

import pytest

from autograder.instructor.near_identical import code_lines, near_identical
from autograder.registry import exercise_names, load_exercise
from tests.instructor.class_of_sixty import batchnorm, class_of, from_template, renamed

TEMPLATE = load_exercise("my_batchnorm").hints.template


def _class(size: int) -> dict[str, str]:
    return {f"s{number}": batchnorm(random.Random(number)) for number in range(size)}


def test_a_copy_under_other_names_and_comments_is_found() -> None:
    answers = _class(40)
    answers["copy"] = renamed(answers["s7"])
    (group,) = near_identical("my_batchnorm", answers, [TEMPLATE])
    assert group.students == ("copy", "s7") and group.similarity > 0.95


def test_a_ring_larger_than_half_of_the_class_is_found_by_its_very_text() -> None:
    answers = _class(12)
    text = batchnorm(random.Random(99)).replace(
        "        if self.training:", "        # from the lecture\n        if self.training:"
    )
    answers |= {f"ring{number}": text for number in range(8)}
    (group,) = near_identical("my_batchnorm", answers, [TEMPLATE])
    assert group.students == tuple(f"ring{number}" for number in range(8)) and group.similarity == 1


def test_who_fills_in_the_hints_template_alike_is_not_flagged() -> None:
    answers = _class(30) | {f"t{number}": from_template(random.Random(number)) for number in range(5)}
    assert near_identical("my_batchnorm", answers, [TEMPLATE]) == []


def test_the_stub_untouched_is_not_flagged() -> None:
    stub = "class MyBatchNorm(nn.Module):\n" + "\n".join(
        f"    def part_{n}(self, x):  # yours\n        raise NotImplementedError(x, {n})" for n in range(20)
    )
    assert near_identical("my_batchnorm", {"a": stub, "b": stub}, [TEMPLATE], [stub]) == []


def test_short_answers_prove_nothing() -> None:
    short = "def double(x):\n    return x + x\n"
    assert near_identical("double", {"a": short, "b": short, "c": short}, []) == []


def test_two_students_alone_can_be_alike() -> None:
    answers = {"a": batchnorm(random.Random(3)), "b": renamed(batchnorm(random.Random(3)))}
    assert [group.students for group in near_identical("my_batchnorm", answers, [TEMPLATE])] == [("a", "b")]


def test_text_that_is_no_python_is_passed_over() -> None:
    assert near_identical("x", {"a": "def f(:\n  '''", "b": "\x00(((", "c": ""}, ["...", "def ("]) == []


def test_lines_are_read_without_comments_docstrings_and_names() -> None:
    one = 'def area(width):\n    """What it is."""\n    return width * 2  # twice\n'
    other = "def size(w):\n    return w * 2\n"
    assert [line.tokens for line in code_lines(one)] == [line.tokens for line in code_lines(other)]


@pytest.mark.parametrize("name", exercise_names())
def test_right_answers_of_any_exercise_are_not_flagged(name: str) -> None:
    module = importlib.import_module(f"tests.autograder.right_answers.{exercise_names()[name]}.{name}")
    answers = {
        f"answer{number}": "\n".join(inspect.getsource(part) for part in parts)
        for number, parts in enumerate(module.right_answers)
    }
    assert near_identical(name, answers, [load_exercise(name).hints.template]) == []


def test_only_the_planted_pair_is_found_in_a_class_of_sixty() -> None:
    answers = {student: parts["my_batchnorm"] for student, parts in class_of(60).items() if "my_batchnorm" in parts}
    assert [group.students for group in near_identical("my_batchnorm", answers, [TEMPLATE])] == [("s005", "s018")]
