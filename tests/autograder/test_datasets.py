"""The data that travels with the course is what its generator draws, and loads as it is documented."""

from __future__ import annotations

import json

import pytest
import torch

from autograder.datasets import load_digits
from autograder.datasets.draw_digits import FILE, drawings


def test_the_file_is_what_the_generator_draws() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == drawings()


@pytest.mark.parametrize(("part", "count"), [("training", 1000), ("test", 300)])
def test_the_digits_load(part: str, count: int) -> None:
    greys, digits = load_digits(part)
    assert greys.shape == (count, 64) and greys.dtype is torch.float32
    assert 0 <= greys.min() and greys.max() <= 1
    assert digits.bincount().tolist() == [count // 10] * 10


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="the parts are training and test"):
        load_digits("validation")
