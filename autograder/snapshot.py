"""Values as they were at one moment, stripped of everything a student's object could still change or hide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

# A probe looks at small things; whatever is larger is a mistake, and copying it would cost the learner's memory.
LARGEST_TENSOR = 10_000_000
LONGEST_CONTAINER = 1_000
DEEPEST_CONTAINER = 6


@dataclass(frozen=True)
class TensorSnapshot:
    """A tensor's values (copied to the CPU), with the dtype, shape and device type it had."""

    values: torch.Tensor | None
    dtype: str
    shape: tuple[int, ...]
    device: str


@dataclass(frozen=True)
class Raised:
    """An exception that a probe provoked on purpose, by the name of its class (and those it derives from)."""

    type_name: str
    bases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Other:
    """Something that is neither a tensor nor plain data: only the name of its type is kept."""

    type_name: str


def snapshot(value: Any, depth: int = 0) -> Any:
    """Return a frozen copy of ``value``: TensorSnapshot, Raised, Other, plain scalars, lists or dicts of these."""
    if isinstance(value, torch.Tensor):
        return _tensor_snapshot(value)
    # Exact types only: a subclass of int or str can answer comparisons with code of its own.
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Raised):
        return value
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value).removeprefix("torch.")
    if depth < DEEPEST_CONTAINER:
        if type(value) in (list, tuple, torch.Size) and len(value) <= LONGEST_CONTAINER:
            return [snapshot(item, depth + 1) for item in value]
        if isinstance(value, Mapping) and len(value) <= LONGEST_CONTAINER:
            return {str(key): snapshot(item, depth + 1) for key, item in value.items()}
    return Other(type(value).__name__)


def _tensor_snapshot(value: torch.Tensor) -> TensorSnapshot | Other:
    # A subclass may override what detach or clone return; torch's own code is used, whatever the subclass says.
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return Other(f"{type(value).__name__} with layout {value.layout}")
        shape, dtype, device = tuple(value.shape), str(value.dtype).removeprefix("torch."), value.device.type
        if device == "meta" or value.numel() > LARGEST_TENSOR:
            return TensorSnapshot(None, dtype, shape, device)
        copied = torch.empty(shape, dtype=value.dtype, device="cpu")
        copied.copy_(torch.Tensor.detach(value))
        return TensorSnapshot(copied, dtype, shape, device)
