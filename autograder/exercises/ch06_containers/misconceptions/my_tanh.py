"""Wrong tanhs: three overflows, two lost signs, and some plain slips."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class Textbook(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))


class OneSideOnly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grown = torch.exp(2 * x)
        return (grown - 1) / (grown + 1)


class RightValueOnly(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 - 2 / (torch.exp(2 * x) + 1)


class SignTimesRest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = torch.exp(-2 * x.abs())
        return torch.sign(x) * (1 - small) / (1 + small)


class SignLost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = torch.exp(-2 * x.abs())
        return (1 - small) / (1 + small)


class TwoForgotten(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 / (1 + torch.exp(-x.clamp(-80, 80))) - 1


class Clipped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-1, 1)


class Softened(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x.abs())


class NotShifted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + torch.exp(-2 * x.clamp(-40, 40)))


class HistoryLost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grown = torch.exp(2 * x.detach().clamp(-20, 20))
        return (grown - 1) / (grown + 1)


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grown = torch.exp(x.mul_(2).clamp(-40, 40))
        return (grown - 1) / (grown + 1)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_ENDS = "the section «A right value with a wrong gradient» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "textbook",
        Textbook,
        "output at ±100 and beyond",
        "the formula as it stands, which divides infinity by infinity at both ends",
        "At x = 100, what is the number above the fraction line in float32, and what the one below?",
        _ENDS,
    ),
    _misconception(
        "one_side_only",
        OneSideOnly,
        "output at ±100 and beyond",
        "(exp(2x) - 1) / (exp(2x) + 1), which is nan for large positive x",
        "At -100 all is well. What is exp(200) in float32, and what is it divided by?",
        _ENDS,
    ),
    _misconception(
        "right_value_only",
        RightValueOnly,
        "gradient at ±100 and beyond",
        "1 - 2 / (exp(2x) + 1): right values everywhere, nan on the way back",
        "At x = 100 your value is 1. Which two factors does the chain rule multiply there?",
        _ENDS,
    ),
    _misconception(
        "sign_times_rest",
        SignTimesRest,
        "gradient at zero",
        "sign(x) times a function of |x|, whose gradient is lost at exactly 0",
        "What are the sign of 0 and the derivative of |x| at 0 for autograd? What do they leave of a slope of 1?",
        _ENDS,
    ),
    _misconception(
        "sign_lost",
        SignLost,
        "output of ordinary numbers",
        "the sign of x is lost: the result is never negative",
        "What is tanh of -1? Does your result know which side x came from?",
        _CARD,
    ),
    _misconception(
        "two_forgotten",
        TwoForgotten,
        "output of ordinary numbers",
        "2 · sigmoid(x) - 1, which is half as steep",
        "The slope of tanh at 0 is 1. What is the slope of yours?",
        _CARD,
    ),
    _misconception(
        "clipped",
        Clipped,
        "output of ordinary numbers",
        "the input is clipped to the interval from -1 to 1: this is Hardtanh",
        "What is tanh of 0.9, and what is yours?",
        _CARD,
    ),
    _misconception(
        "softened",
        Softened,
        "output of ordinary numbers",
        "x / (1 + |x|): this is Softsign",
        "What is tanh of 3, and how far is yours from it?",
        _CARD,
    ),
    _misconception(
        "not_shifted",
        NotShifted,
        "output of ordinary numbers",
        "a sigmoid of 2x, which runs from 0 to 1",
        "Which is the smallest number that tanh can give? And yours?",
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
        "in_place",
        InPlace,
        "the input is left as it was",
        "the input tensor itself is overwritten",
        "One of your methods ends in an underscore. What does that mean for the tensor that came in?",
        _CARD,
    ),
)
