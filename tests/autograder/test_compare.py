"""Comparing what was observed: every difference is found, named, and never found where there is none."""

from __future__ import annotations

import math

import pytest
import torch

from autograder.compare import difference
from autograder.snapshot import LONGEST_CONTAINER, Other, Raised, TensorSnapshot, snapshot


def _said(expected: object, got: object, tolerance: float | None = None) -> str | None:
    return difference(snapshot(expected), snapshot(got), tolerance)


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2, 3),
        torch.tensor([math.nan, math.inf, -math.inf]),
        torch.tensor(3),
        torch.empty(0),
        [1, 2.5, "text", None, True],
        {"a": torch.ones(2), "b": [Raised("ValueError")]},
        math.nan,
        torch.float16,
    ],
)
def test_a_value_agrees_with_itself(value: object) -> None:
    assert _said(value, value) is None


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (torch.ones(2, 3), torch.ones(3, 2), "expected shape (2, 3), yours has shape (3, 2)"),
        (torch.ones(2), torch.ones(2).double(), "expected dtype float32, yours has dtype float64"),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), "expected [1, 2], yours is [1, 3]"),
        (
            torch.zeros(4, 4),
            torch.eye(4),
            "4 of 16 values differ, the largest gap is at [0, 0]: expected 0, yours is 1",
        ),
        (torch.zeros(3, 3), torch.full((3, 3), math.nan), "9 of 9 values are nan or infinite"),
        (True, 1, "expected True, yours is 1"),
        (1, True, "expected 1, yours is True"),
        (0, None, "expected 0, yours is None"),
        (None, 0, "expected None, yours is 0"),
        (0.5, 0.6, "expected 0.5, yours is 0.6"),
        ("a", "b", "expected 'a', yours is 'b'"),
        ([1, 2], [1, 2, 3], "expected [1, 2], yours is [1, 2, 3]"),
        (list("abcdefgh"), list("abcdefgx"), "at position 7: expected 'h', yours is 'x'"),
        ([1, 2.0], [1, 2.5], "at position 1: expected 2, yours is 2.5"),
        (list("abc"), list("acb"), "expected ['a', 'b', 'c'], yours is ['a', 'c', 'b']"),
        (list("abcdefgh"), list("abcdefhg"), "at position 6: expected 'g', yours is 'h'"),
        (
            list("abcdefgh"),
            list("abcdefg"),
            "at position 7: expected 'h', yours is nothing more (8 expected, yours has 7)",
        ),
        (list("abcdef"), list("abcdefg"), "at position 6: expected nothing more, yours is 'g'"),
        (torch.tensor([1.0]), torch.tensor([-0.0]), "expected [1], yours is [0]"),
        ("a", {"b": 1, "c": 2}, "expected 'a', yours is a dict with b, c"),
        ({"a": 1, "b": 2}, {"a": 1}, "b missing (expected a, b, yours has a)"),
        ({"a": 1}, {"a": 1, "c": 2}, "c too many"),
        ({"a": torch.ones(1)}, {"a": torch.zeros(1)}, "a: expected [1], yours is [0]"),
        (Raised("ValueError"), "no error", "expected a ValueError, yours gives no error"),
        (Raised("ValueError"), Raised("KeyError"), "expected a ValueError, yours raises KeyError"),
        ("no error", Raised("KeyError"), "expected no error, yours gives a KeyError"),
        (Raised("AttributeError"), "no error", "expected an AttributeError, yours gives no error"),
        (Raised("IndexError"), "no error", "expected an IndexError, yours gives no error"),
        ("no error", Raised("IndexError"), "expected no error, yours gives an IndexError"),
        (
            [torch.ones(2)] * 7,
            [torch.ones(2), torch.ones(3)] * 4,
            "at position 1: expected a tensor [1, 1], yours is a tensor [1, 1, 1] (7 expected, yours has 8)",
        ),
        (torch.ones(2, 3), Raised("IndexError"), "expected a tensor of shape (2, 3), yours raises IndexError"),
    ],
)
def test_a_difference_is_said_in_words_and_numbers(expected: object, got: object, words: str) -> None:
    assert words in _said(expected, got)


def test_an_error_of_a_narrower_kind_is_the_error_asked_for() -> None:
    assert _said(Raised("ValueError"), Raised("UnicodeError", ("ValueError",))) is None
    assert _said(Raised("UnicodeError"), Raised("ValueError")) is not None


def test_the_bound_grows_with_the_largest_value_and_not_with_each_one() -> None:
    expected = torch.tensor([1000.0, 0.0])
    assert _said(expected, expected + torch.tensor([0.0, 0.01])) is None
    assert _said(expected, expected + torch.tensor([0.0, 0.05])) is not None
    assert _said(torch.zeros(2), torch.tensor([0.0, 0.001])) is not None


def test_a_tolerance_is_an_absolute_bound_and_zero_means_equal() -> None:
    assert _said(1.0, 1.04, 0.05) is None
    assert "expected about 1" in _said(1.0, 1.06, 0.05)
    assert _said(torch.ones(2), torch.ones(2) + 1e-6) is None
    assert _said(torch.ones(2), torch.ones(2) + 1e-6, 0) is not None


def test_a_snapshot_no_longer_follows_its_tensor() -> None:
    tensor = torch.ones(3)
    taken = snapshot(tensor)
    tensor.add_(1)
    assert torch.equal(taken.values, torch.ones(3))


def test_a_tensor_subclass_cannot_answer_for_itself() -> None:
    class Sly(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return torch.ones(2)

    taken = snapshot(torch.zeros(2).as_subclass(Sly))
    assert type(taken.values) is torch.Tensor and torch.equal(taken.values, torch.zeros(2))


def test_what_is_too_large_or_too_strange_keeps_only_its_kind() -> None:
    assert snapshot(list(range(LONGEST_CONTAINER + 1))) == Other("list")
    assert snapshot(object()) == Other("object")
    large = snapshot(torch.empty(1, device="meta").expand(100_000, 1_000))
    assert isinstance(large, TensorSnapshot) and large.values is None
    nested: list = []
    nested.append(nested)
    assert "list" in repr(snapshot(nested))
