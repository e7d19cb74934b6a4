"""Wrong sigmoids: three that break where exp overflows, one that breaks at zero, and some plain slips."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class Textbook(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(-x))


class ExpOverExp(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x) / (1 + torch.exp(x))


class WhereTooLate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = torch.exp(x) / (1 + torch.exp(x)), 1 / (1 + torch.exp(-x))
        return torch.where(x < 0, left, right)


class AbsoluteValue(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = torch.exp(-x.abs())
        return torch.where(x < 0, small / (1 + small), 1 / (1 + small))


class RangeTooNarrow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(-x.clamp(-3, 3)))


class SignForgotten(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(x.clamp(-80, 80)))


class StraightLine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x / 6 + 0.5).clamp(0, 1)


class HalfForgotten(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (1 + torch.tanh(x)) / 2


class HistoryLost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(-x.detach().clamp(-80, 80)))


class AlwaysFloat32(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(-x.float().clamp(-80, 80)))


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(x.neg_().clamp(-80, 80)))


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_ENDS = "the section «A right value with a wrong gradient» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "textbook",
        Textbook,
        "gradient at ±100 and beyond",
        "1 / (1 + exp(-x)) as it stands: the value survives an infinity, the gradient does not",
        "At x = -100 the value is right. Which two factors does the chain rule multiply there, and is one of them 0?",
        _ENDS,
    ),
    _misconception(
        "exp_over_exp",
        ExpOverExp,
        "output at ±100 and beyond",
        "exp(x) / (1 + exp(x)), which divides infinity by infinity",
        "At x = 100, what stands above your fraction line in float32, and what below?",
        _ENDS,
    ),
    _misconception(
        "where_too_late",
        WhereTooLate,
        "gradient at ±100 and beyond",
        "torch.where chooses between two results that have both been computed",
        "Backward goes through both branches of torch.where, one of them with a gradient of 0. What is 0 times "
        "infinity?",
        _ENDS,
    ),
    _misconception(
        "absolute_value",
        AbsoluteValue,
        "gradient at zero",
        "the stable form with exp(-|x|), whose gradient is lost at exactly 0",
        "What does autograd take for the derivative of |x| at 0, and what is left of your gradient there?",
        _ENDS,
    ),
    _misconception(
        "range_too_narrow",
        RangeTooNarrow,
        "output at ±100 and beyond",
        "the input is kept in a range in which the sigmoid is not yet 0 or 1",
        "How far is the sigmoid of your bound from 1? From which x on could float32 not tell?",
        _CARD,
    ),
    _misconception(
        "sign_forgotten",
        SignForgotten,
        "output of ordinary numbers",
        "the minus sign of exp(-x) is missing",
        "Should a large positive x give something near 1 or near 0?",
        _CARD,
    ),
    _misconception(
        "straight_line",
        StraightLine,
        "output of ordinary numbers",
        "a straight line with two bends: this is Hardsigmoid",
        "What is the sigmoid of 3, and what is yours?",
        _CARD,
    ),
    _misconception(
        "half_forgotten",
        HalfForgotten,
        "output of ordinary numbers",
        "(1 + tanh(x)) / 2, which is too steep",
        "The slope of the sigmoid at 0 is a quarter. What is the slope of yours, given that tanh has slope 1 there?",
        _CARD,
    ),
    _misconception(
        "history_lost",
        HistoryLost,
        "gradient of ordinary numbers",
        "the output is computed from a detached input",
        "Print the output's `grad_fn`. Which call of yours cut the input off?",
        "chapter 5, on who builds the graph",
    ),
    _misconception(
        "always_float32",
        AlwaysFloat32,
        "output of ordinary numbers",
        "the input is converted to float32",
        "A model was converted with double(). Which dtype do the layers after yours expect?",
        _CARD,
    ),
    _misconception(
        "in_place",
        InPlace,
        "the input is left as it was",
        "the input tensor itself is overwritten",
        "One of your methods ends in an underscore. What does that mean for the tensor that came in?",
        _CARD,
    ),
)
