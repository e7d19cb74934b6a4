"""Wrong dropouts. Each changes one decision of a layer that is otherwise as torch's."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class _Layer(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.refuse(p)
        self.p = p

    def refuse(self, p: float) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p must lie between 0 and 1, got {p}")

    def keep_probability(self) -> float:
        return 1 - self.p

    def mask(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x) < self.keep_probability()

    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        if self.keep_probability() == 0:
            return torch.zeros_like(x) * x
        return x * keep / self.keep_probability()

    def active(self) -> bool:
        return self.training

    def outside_training(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x, self.mask(x)) if self.active() else self.outside_training(x)


class NoScaling(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return x * keep


class ScaledInEval(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return x * keep

    def outside_training(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.keep_probability()


class KeepProbability(_Layer):
    def keep_probability(self) -> float:
        return self.p


class FlippedMask(_Layer):
    def mask(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x) < self.p


class ScaledByP(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return x * keep / self.p if self.p else x * keep


class AlwaysActive(_Layer):
    def active(self) -> bool:
        return True


class OneMaskForAllRows(_Layer):
    def mask(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rand(x.shape[-1], device=x.device) < self.keep_probability()


class WholeRows(_Layer):
    def mask(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rand(x.shape[0], 1, device=x.device) < self.keep_probability()


class MaskKept(_Layer):
    def mask(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "kept"):
            self.kept = super().mask(x)
        return self.kept


class ZeroTimesInfinity(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return x * keep / torch.tensor(self.keep_probability(), dtype=x.dtype)


class InputChanged(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        if self.keep_probability() == 0:
            x.data.zero_()
            return x * 1
        x.data.mul_(keep).div_(self.keep_probability())
        return _through(x, keep, self.keep_probability())


def _through(x: torch.Tensor, keep: torch.Tensor, share: float) -> torch.Tensor:
    """Return x, already dropped in place, with the gradient of a right dropout."""
    return x.detach() + (x - x.detach()) * keep / share


class AnyProbability(_Layer):
    def refuse(self, p: float) -> None:
        pass


class GradientEverywhere(_Layer):
    def drop(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            dropped = super().drop(x, keep)
        return x + (dropped - x.detach())


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "no_scaling",
        NoScaling,
        "factor on the values kept, smallest",
        "values are dropped and the rest is left as it is",
        "Feed 1000 ones with p=0.5 and sum the output in training mode, then in eval mode. Should the two differ?",
        "the section on dropout in this chapter",
    ),
    _misconception(
        "scaled_in_eval",
        ScaledInEval,
        "output in eval mode",
        "the scaling is done in eval mode instead of in training",
        "Which of the two modes pays for the scaling in nn.Dropout? What does `nn.Dropout(0.5).eval()(x) is x` say?",
        "the section on dropout in this chapter",
    ),
    _misconception(
        "keep_probability",
        KeepProbability,
        "share of values dropped",
        "p read as the probability of keeping a value",
        "With p=0.2, how many of 1000 values does nn.Dropout set to zero, and how many does yours?",
        "the box «Two words that mislead» in this chapter",
    ),
    _misconception(
        "flipped_mask",
        FlippedMask,
        "share of values dropped",
        "the mask keeps with probability p, and the scaling is right",
        "How many of `torch.rand(1000) < 0.2` are True? Does your mask say True for what stays or for what goes?",
        "the box «Two words that mislead» in this chapter",
    ),
    _misconception(
        "scaled_by_p",
        ScaledByP,
        "factor on the values kept, smallest",
        "the kept values are divided by p",
        "With p=0.2 most values stay. Should what stays grow a little or fivefold?",
        "the section on dropout in this chapter",
    ),
    _misconception(
        "always_active",
        AlwaysActive,
        "output in eval mode",
        "values are dropped in eval mode too",
        "What does eval() change on your layer, and who reads it?",
        "the section on train() and eval() in this chapter",
    ),
    _misconception(
        "one_mask_for_all_rows",
        OneMaskForAllRows,
        "rows that are dropped alike",
        "one mask shared by every row of the batch",
        "Look at the zeros of two rows. Should they sit in the same columns?",
        "the first paragraph of nn.Dropout's documentation",
    ),
    _misconception(
        "whole_rows",
        WholeRows,
        "columns that are dropped alike",
        "whole rows are dropped together",
        "Count the zeros in each row. Should any row be empty while another is complete?",
        "the first paragraph of nn.Dropout's documentation",
    ),
    _misconception(
        "mask_kept",
        MaskKept,
        "two training calls drop the same values",
        "the first mask is stored and used for ever",
        "Call the layer twice on the same input. Which values should be zero the second time?",
        "the first paragraph of nn.Dropout's documentation",
    ),
    _misconception(
        "zero_divided_by_zero",
        ZeroTimesInfinity,
        "output in training mode",
        "p=1 divides zero by zero",
        "What is your scaling factor when p=1, and what is that times 0?",
        "the card of this exercise: which two probabilities does it name?",
    ),
    _misconception(
        "input_changed",
        InputChanged,
        "the input is left as it was",
        "the input tensor itself is overwritten",
        "Print x before and after `layer(x)`. Who else may still need x, for example a skip connection?",
        "the card of this exercise",
    ),
    _misconception(
        "any_probability",
        AnyProbability,
        "a probability below 0",
        "p is not checked when the layer is built",
        "What does nn.Dropout(1.5) do, and when: at construction or at the first batch?",
        "the first lines of the source of `_DropoutNd.__init__`",
    ),
    _misconception(
        "gradient_everywhere",
        GradientEverywhere,
        "largest gradient where a value was dropped",
        "the gradient does not pass through the mask",
        "A value that was dropped cannot change the output. What must its gradient be?",
        "the section on dropout in this chapter",
    ),
)
