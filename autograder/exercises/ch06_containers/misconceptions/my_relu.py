"""Wrong ReLUs: the first lines that come to mind, and each one's corner."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class TimesMask(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (x > 0)


class Clamped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=0)


class MaximumWithZero(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.maximum(x, torch.zeros_like(x))


class HalfOfTheSum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + x.abs()) / 2


class NanSwallowed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x, torch.zeros_like(x))


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x[x <= 0] = 0
        return x


class BelowZeroInPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x[x < 0] = 0
        return x


class Leaking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x <= 0, 0.01 * x, x)


class SignDropped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs()


class HistoryLost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.where(x <= 0, torch.zeros_like(x), x)


class OneNumberAtATime(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x > 0 else x * 0


class NoModule:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x <= 0, torch.zeros_like(x), x)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_CORNERS = "the section «Four ways to write ReLU» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "times_mask",
        TimesMask,
        "output at -inf and inf",
        "the input is multiplied by a mask of zeros and ones",
        "What is minus infinity times zero, in floating point?",
        _CORNERS,
    ),
    _misconception(
        "clamped",
        Clamped,
        "gradient at zero",
        "clamp(min=0), which passes the gradient at exactly 0",
        "At exactly 0, is the input inside the range that clamp leaves alone or outside? What gradient follows?",
        _CORNERS,
    ),
    _misconception(
        "maximum_with_zero",
        MaximumWithZero,
        "gradient at zero",
        "the larger of x and 0, whose gradient is shared at a tie",
        "When both arguments of a maximum are equal, who gets the gradient, and how much of it?",
        _CORNERS,
    ),
    _misconception(
        "half_of_the_sum",
        HalfOfTheSum,
        "output at -inf and inf",
        "(x + |x|) / 2, which subtracts infinity from infinity",
        "Put minus infinity into your sum: which two numbers are added?",
        _CORNERS,
    ),
    _misconception(
        "nan_swallowed",
        NanSwallowed,
        "output of nan",
        "nan is not greater than 0, and so becomes 0",
        "Which answer does nan give to your comparison, and which branch does it take? Should a bug upstream vanish "
        "here?",
        _CORNERS,
    ),
    _misconception(
        "in_place",
        InPlace,
        "the input is left as it was",
        "the input tensor itself is overwritten",
        "Print x before and after the layer. Who else may still need it, for instance a skip connection?",
        _CARD,
    ),
    _misconception(
        "below_zero_in_place",
        BelowZeroInPlace,
        "the input is left as it was",
        "the negative entries of the input tensor itself are overwritten, and 0 passes with its gradient",
        "Print x before and after the layer: whose numbers did you change? And which side does an exact 0 fall on?",
        _CARD,
    ),
    _misconception(
        "leaking",
        Leaking,
        "output of ordinary numbers",
        "negative numbers are made small instead of 0: this is LeakyReLU",
        "What should -3 become, and what does it become in yours?",
        _CARD,
    ),
    _misconception(
        "sign_dropped",
        SignDropped,
        "output of ordinary numbers",
        "the sign is dropped: this is the absolute value",
        "What should -3 become: 3 or 0?",
        _CARD,
    ),
    _misconception(
        "history_lost",
        HistoryLost,
        "gradient of ordinary numbers",
        "the output is computed where autograd does not look",
        "Print the output's `grad_fn`. Which line of yours keeps autograd from recording?",
        "chapter 5, on who builds the graph",
    ),
    _misconception(
        "one_number_at_a_time",
        OneNumberAtATime,
        "output of ordinary numbers",
        "an if that asks a whole tensor one question",
        "A batch holds positive and negative numbers. What is the one answer to the question in your `if`?",
        _CARD,
    ),
    _misconception(
        "no_module",
        NoModule,
        "nn.Sequential takes it",
        "a class that computes but is no nn.Module",
        "Put your layer into an nn.Sequential. What does the error say it is not?",
        "the section «Why wrap a function in a class?» in this chapter",
    ),
)
