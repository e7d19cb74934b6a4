"""Wrong linear layers. Each changes one decision of a layer that is otherwise as torch's."""

from __future__ import annotations

import math

import torch
from torch import nn

from autograder.exercise import Misconception


class _Layer(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.make_weight()
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
        else:
            self.leave_bias_empty()
        self.reset_parameters()
        self.finish()

    def make_weight(self) -> None:
        self.weight = nn.Parameter(torch.empty(self.out_features, self.in_features))

    def leave_bias_empty(self) -> None:
        self.register_parameter("bias", None)

    def finish(self) -> None:
        pass

    def bound(self) -> float:
        return 1 / math.sqrt(self.in_features)

    def fill(self, value: torch.Tensor) -> None:
        value.uniform_(-self.bound(), self.bound())

    def fill_bias(self, value: torch.Tensor) -> None:
        self.fill(value)

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.fill(self.weight)
            if self.bias is not None:
                self.fill_bias(self.bias)

    def product(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.T

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.product(x)
        return y if self.bias is None else y + self.bias


class PlainWeight(_Layer):
    def make_weight(self) -> None:
        self.weight = torch.empty(self.out_features, self.in_features, requires_grad=True)


class StoredTransposed(_Layer):
    def make_weight(self) -> None:
        self.weight = nn.Parameter(torch.empty(self.in_features, self.out_features))

    def product(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


class NormalNumbers(_Layer):
    def fill(self, value: torch.Tensor) -> None:
        value.normal_()


class HeInitialisation(_Layer):
    def fill(self, value: torch.Tensor) -> None:
        if value.dim() == 2:
            nn.init.kaiming_uniform_(value, nonlinearity="relu")
        else:
            super().fill(value)


class DrawnTwice(_Layer):
    def make_weight(self) -> None:
        self.weight = nn.Parameter(torch.randn(self.out_features, self.in_features))


class ZeroBias(_Layer):
    def fill_bias(self, value: torch.Tensor) -> None:
        value.zero_()


class OtherArithmetic(_Layer):
    def fill(self, value: torch.Tensor) -> None:
        value.copy_(torch.rand(value.shape) * 2 * self.bound() - self.bound())


class PlainNone(_Layer):
    def leave_bias_empty(self) -> None:
        self.bias = None


class NewObjectsOnReset(_Layer):
    def reset_parameters(self) -> None:
        self.weight = nn.Parameter(torch.empty_like(self.weight).uniform_(-self.bound(), self.bound()))
        if self.bias is not None:
            self.bias = nn.Parameter(torch.empty_like(self.bias).uniform_(-self.bound(), self.bound()))


class TransposeKept(_Layer):
    def finish(self) -> None:
        self.transposed = self.weight.T

    def product(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.transposed


class DataInForward(_Layer):
    def product(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.data.T


class RowsOnly(_Layer):
    def product(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, self.weight.T)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "plain_weight",
        PlainWeight,
        "parameters()",
        "the weight is a tensor that requires a gradient, and no parameter",
        "Which names does `layer.named_parameters()` list? What decides in which registry an assigned tensor lands?",
        "the section «Parameter or tensor» in this chapter",
    ),
    _misconception(
        "stored_transposed",
        StoredTransposed,
        "parameters()",
        "the weight is stored as (in_features, out_features)",
        "What is `nn.Linear(4, 3).weight.shape`? Could a file written by nn.Linear be loaded into your layer?",
        "the section «The linear layer» in this chapter",
    ),
    _misconception(
        "normal_numbers",
        NormalNumbers,
        "weight under one seed",
        "the numbers are drawn from a normal distribution",
        "Build `nn.Linear(100, 1000)` and look at its smallest and largest weight. What do they tell about the kind of "
        "distribution, and about its bounds?",
        "the section «Where the first numbers come from» in this chapter",
    ),
    _misconception(
        "he_initialisation",
        HeInitialisation,
        "weight under one seed",
        "kaiming_uniform_ with the gain of a ReLU",
        "By which factor is your largest weight larger than nn.Linear's? Which argument of `kaiming_uniform_` does "
        "`nn.Linear.reset_parameters` pass?",
        "the section «Where the first numbers come from» in this chapter",
    ),
    _misconception(
        "drawn_twice",
        DrawnTwice,
        "weight under one seed",
        "random numbers are drawn for the weight before they are drawn again",
        "How many random numbers does your layer take from the generator, and how many does nn.Linear take? What "
        "becomes of the first ones?",
        "the section «Where the first numbers come from» in this chapter",
    ),
    _misconception(
        "zero_bias",
        ZeroBias,
        "bias under one seed",
        "the bias starts at zero",
        "Print the bias of a fresh `nn.Linear(4, 3)`. Is it what you expected?",
        "the source of `nn.Linear.reset_parameters`",
    ),
    _misconception(
        "other_arithmetic",
        OtherArithmetic,
        "weight under one seed, its bits read as integers",
        "the right distribution, computed with other roundings",
        "Your numbers agree with torch's to seven digits. How often is each of yours rounded on its way, and which "
        "method draws between two bounds in one go?",
        "the section «Where the first numbers come from» in this chapter",
    ),
    _misconception(
        "plain_none",
        PlainNone,
        "a plain tensor assigned to the empty bias",
        "without a bias, `bias` is an ordinary attribute",
        "Compare `layer._parameters` of both layers when bias=False. Which of the two still knows the name?",
        "the section «An empty slot» in this chapter",
    ),
    _misconception(
        "new_objects_on_reset",
        NewObjectsOnReset,
        "reset_parameters() keeps the objects that an optimizer holds",
        "reset_parameters builds new parameters",
        "An optimizer was made before `reset_parameters()` is called. Which tensors does it step afterwards?",
        "the section «What the optimizer holds» in this chapter",
    ),
    _misconception(
        "transpose_kept",
        TransposeKept,
        "output after .double()",
        "the transposed weight is computed once and kept",
        "After `layer.double()`, what is the dtype of each tensor that your forward reads?",
        "the section «Plain tensors stay behind» in this chapter",
    ),
    _misconception(
        "data_in_forward",
        DataInForward,
        "gradient of weight",
        "forward reads the weight past autograd",
        "After `backward()`, what is `layer.weight.grad`? Where in forward does the history of the weight end?",
        "the section «What operations return» in this chapter",
    ),
    _misconception(
        "rows_only",
        RowsOnly,
        "output of (N, L, in_features)",
        "forward takes matrices only",
        "Which shapes does `torch.mm` accept, and which does the operator between x and the weight accept?",
        "the section «The linear layer» in this chapter",
    ),
)
