"""Cases: the inputs of a probe, drawn from a seed, on one device."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

PUBLIC_SEED = 0


class Case:
    """One situation for a probe: named values, a device and a seed of its own.

    The values are attributes (``case.x``). Tensors are copied for every run, because an implementation may change
    its input, and the next one must not see that.
    """

    def __init__(self, name: str, seed: int, device: str, **values: Any) -> None:
        self.name = name
        self.seed = seed
        self.device = device
        self.values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"case {self.__dict__.get('name')!r} has no value {name!r}") from None

    def fresh(self) -> Case:
        """Return the same case with copies of its tensors, on its device."""
        return Case(self.name, self.seed, self.device, **{k: _copied(v, self.device) for k, v in self.values.items()})


def _copied(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(device)
    if isinstance(value, list):
        return [_copied(item, device) for item in value]
    return copy.deepcopy(value)


class Draw:
    """Random numbers for building cases: a torch generator on the CPU, so that every device sees the same values."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def number(self, low: float, high: float) -> float:
        """Return a float from ``low`` to ``high`` with two decimals, so that messages stay readable."""
        return round(low + (high - low) * float(torch.rand((), generator=self.generator)), 2)

    def normal(self, *shape: int, mean: float = 0.0, spread: float = 1.0) -> torch.Tensor:
        """Return a float32 tensor of normal values with that mean and standard deviation."""
        return mean + spread * torch.randn(*shape, generator=self.generator)


def devices(device: str | None = None) -> Sequence[str]:
    """Return the devices to check on: the one asked for, or the CPU and, where there is one, the GPU.

    Raises ValueError for a device that this machine does not have.
    """
    if device is None:
        return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    kind = torch.device(device).type
    if kind not in ("cpu", "cuda") or (kind == "cuda" and not torch.cuda.is_available()):
        raise ValueError(f"device {device!r} is not available here; use 'cpu' or, with a GPU, 'cuda'")
    return [kind]
