"""What a student's probe has to judge: BatchNorms that are right, each in its own way, and a zoo of wrong ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Plain(nn.Module):
    """Right, and the base of the zoo: the decisions, one method each."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.register(num_features)

    def register(self, num_features: int) -> None:
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def share(self) -> Any:
        return 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum

    def remembered_variance(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(0, unbiased=True)

    def dividing_variance(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(0, unbiased=False)

    def update(self, x: torch.Tensor) -> None:
        with torch.no_grad():
            # Counted before it is refused, as torch does: a probe may look at the count afterwards.
            self.num_batches_tracked += 1
            if len(x) < 2:
                raise ValueError("a single value per channel has no variance")
            self.running_mean.lerp_(x.mean(0), self.share())
            self.running_var.lerp_(self.remembered_variance(x), self.share())

    def normal(self, x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return (x - mean) / (variance + self.eps).sqrt()

    def in_training(self, x: torch.Tensor) -> torch.Tensor:
        self.update(x)
        return self.normal(x, x.mean(0), self.dividing_variance(x))

    def in_eval(self, x: torch.Tensor) -> torch.Tensor:
        return self.normal(x, self.running_mean, self.running_var)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise rows of shape (rows, features)."""
        out = self.in_training(x) if self.training else self.in_eval(x)
        return out * self.weight + self.bias


class DoubleInside(Plain):
    """Right: sums in float64, so that its last digits are not torch's."""

    def in_training(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.double()
        self.update(x)
        variance = wide.square().mean(0) - wide.mean(0).square()
        return ((wide - wide.mean(0)) * (variance + self.eps).rsqrt()).to(x.dtype)


class OtherOrder(Plain):
    """Right: registers in another order, and has a buffer that is in no file."""

    def register(self, num_features: int) -> None:
        self.num_batches_tracked = nn.Buffer(torch.zeros((), dtype=torch.long))
        self.running_var = nn.Buffer(torch.ones(num_features))
        self.running_mean = nn.Buffer(torch.zeros(num_features))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.weight = nn.Parameter(torch.ones(num_features))


class _Statistics(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.mean(0), x.var(0, correction=0)


class WithHelper(Plain):
    """Right: a child module does a part of the work."""

    def register(self, num_features: int) -> None:
        super().register(num_features)
        self.statistics = _Statistics()

    def in_training(self, x: torch.Tensor) -> torch.Tensor:
        self.update(x)
        return self.normal(x, *self.statistics(x))


class Functional(Plain):
    """Right: torch's own function does the work."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise rows of shape (rows, features)."""
        share: Any = 0.0
        if self.training:
            self.num_batches_tracked.add_(1)
            share = self.share()
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        return nn.functional.batch_norm(x, *state, self.training, share, self.eps)


class _RemembersBiased(Plain):
    def remembered_variance(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(0, unbiased=False)


class _DividesUnbiased(Plain):
    def dividing_variance(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(0, unbiased=True)


class _MomentumAsDecay(Plain):
    def share(self) -> Any:
        return super().share() if self.momentum is None else 1 - self.momentum


class _NoneIsTheDefault(Plain):
    def share(self) -> Any:
        return 0.1 if self.momentum is None else self.momentum


class _CountForgotten(Plain):
    def share(self) -> Any:
        return 1.0 if self.momentum is None else self.momentum

    def update(self, x: torch.Tensor) -> None:
        super().update(x)
        self.num_batches_tracked.zero_()


class _EvalUsesTheBatch(Plain):
    def in_eval(self, x: torch.Tensor) -> torch.Tensor:
        return self.normal(x, x.mean(0), self.dividing_variance(x))


class _EvalUpdates(Plain):
    def in_eval(self, x: torch.Tensor) -> torch.Tensor:
        out = super().in_eval(x)
        self.update(x)
        return out


class _NeverTrainsAgain(Plain):
    def train(self, mode: bool = True) -> Any:
        self.for_good = getattr(self, "for_good", False) or not mode
        return super().train(mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise rows of shape (rows, features)."""
        learning = self.training and not getattr(self, "for_good", False)
        return (self.in_training(x) if learning else self.in_eval(x)) * self.weight + self.bias


class _PlainTensors(Plain):
    def register(self, num_features: int) -> None:
        super().register(num_features)
        del self.running_mean, self.running_var
        self.running_mean, self.running_var = torch.zeros(num_features), torch.ones(num_features)


class _StatisticsAsParameters(Plain):
    def register(self, num_features: int) -> None:
        super().register(num_features)
        del self.running_mean, self.running_var
        self.running_mean = nn.Parameter(torch.zeros(num_features), requires_grad=False)
        self.running_var = nn.Parameter(torch.ones(num_features), requires_grad=False)


class _GradientPassesBy(Plain):
    def in_training(self, x: torch.Tensor) -> torch.Tensor:
        self.update(x)
        return self.normal(x, x.mean(0).detach(), self.dividing_variance(x).detach())


class _EpsFixed(Plain):
    def normal(self, x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        return (x - mean) / (variance + 1e-5).sqrt()


class _WeightUnused(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise rows of shape (rows, features)."""
        out = self.in_training(x) if self.training else self.in_eval(x)
        return out + self.bias + 0 * self.weight


class _WritesOnItsInput(Plain):
    def in_eval(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x.sub_(self.running_mean).div_((self.running_var + self.eps).sqrt())
        return x


class _AlwaysFloat32(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise rows of shape (rows, features)."""
        return super().forward(x).float()


RIGHT = {
    "a plain design": Plain,
    "a design that sums in float64": DoubleInside,
    "a design that registers in another order": OtherOrder,
    "a design with a helper module": WithHelper,
    "a design that calls torch's function": Functional,
}
# Named by the place of the fault, not by the fault: what is wrong there is for the probe to find out.
ZOO = {
    "the variance it remembers": _RemembersBiased,
    "the variance it divides by": _DividesUnbiased,
    "the weight of the newest batch": _MomentumAsDecay,
    "momentum None": _NoneIsTheDefault,
    "the count of batches": _CountForgotten,
    "the output in eval mode": _EvalUsesTheBatch,
    "its statistics in eval mode": _EvalUpdates,
    "training after eval": _NeverTrainsAgain,
    "its file": _PlainTensors,
    "its parameters": _StatisticsAsParameters,
    "the gradient of the input": _GradientPassesBy,
    "eps": _EpsFixed,
    "the weight": _WeightUnused,
    "its input": _WritesOnItsInput,
    "float64": _AlwaysFloat32,
}
