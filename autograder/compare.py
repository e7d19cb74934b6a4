"""Comparing two observations, and saying in words and numbers what differs."""

from __future__ import annotations

import math
from typing import Any

import torch

from autograder.snapshot import Other, Raised, TensorSnapshot

# (relative, absolute): the tolerances that torch.testing.assert_close documents for each dtype; float32 is twice as
# wide, because a layer written by hand may sum in another order than torch's kernel.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1e-5, 2e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1e-5, 2e-5),
    "complex128": (1e-7, 1e-7),
}
MOST_VALUES_SHOWN = 6


def difference(expected: Any, got: Any, tolerance: float | None = None) -> str | None:
    """Return one sentence on how ``got`` differs from ``expected``, or None when they agree.

    Both are snapshots. ``tolerance`` replaces the dtype's own tolerances as an absolute bound; 0 asks for equality.
    """
    if isinstance(expected, TensorSnapshot):
        return _tensor_difference(expected, got, tolerance)
    if isinstance(expected, Raised) or isinstance(got, Raised):
        return _raised_difference(expected, got)
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        same = type(got) is type(expected) and got == expected
        return None if same else f"expected {words(expected)}, yours is {words(got)}"
    if isinstance(expected, (int, float)):
        return _number_difference(expected, got, tolerance)
    if isinstance(expected, list):
        return _list_difference(expected, got, tolerance)
    if isinstance(expected, dict):
        return _dict_difference(expected, got, tolerance)
    return None if expected == got else f"expected {words(expected)}, yours is {words(got)}"


def _tensor_difference(expected: TensorSnapshot, got: Any, tolerance: float | None) -> str | None:
    if isinstance(got, Raised):
        return f"expected {words(expected)}, yours raises {got.type_name}"
    if not isinstance(got, TensorSnapshot):
        return f"expected {words(expected)}, yours is {words(got)}"
    if got.shape != expected.shape:
        return f"expected shape {expected.shape}, yours has shape {got.shape}"
    if got.dtype != expected.dtype:
        return f"expected dtype {expected.dtype}, yours has dtype {got.dtype}"
    if got.device != expected.device:
        return f"expected a tensor on {expected.device}, yours is on {got.device}"
    if expected.values is None or got.values is None:
        return None if expected.values is got.values else "expected values, yours has none (a meta tensor?)"
    if tolerance is not None:
        relative, absolute = 0.0, tolerance
    else:
        relative, absolute = TOLERANCES.get(expected.dtype, (0.0, 0.0))
        # Rounding errors of a sum grow with its largest terms, so the bound does as well.
        if absolute:
            absolute *= max(1.0, _largest(expected.values))
    close = torch.isclose(got.values, expected.values, rtol=relative, atol=absolute, equal_nan=True)
    if bool(close.all()):
        return None
    return _value_difference(expected.values, got.values, close)


def _largest(values: torch.Tensor) -> float:
    finite = values[torch.isfinite(values)].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _value_difference(expected: torch.Tensor, got: torch.Tensor, close: torch.Tensor) -> str:
    if expected.numel() <= MOST_VALUES_SHOWN and expected.dim() <= 1:
        return f"expected {_numbers(expected)}, yours is {_numbers(got)}"
    invalid = int((~torch.isfinite(got) & torch.isfinite(expected)).sum()) if got.is_floating_point() else 0
    if invalid:
        return f"{invalid} of {got.numel()} values are nan or infinite where torch has ordinary numbers"
    distance = torch.where(close, 0.0, (got.double() - expected.double()).abs().nan_to_num(math.inf))
    place = tuple(int(i) for i in torch.unravel_index(distance.argmax(), distance.shape))
    return (
        f"{int((~close).sum())} of {got.numel()} values differ, the largest gap is at {list(place)}: "
        f"expected {_number(expected[place])}, yours is {_number(got[place])}"
    )


def _raised_difference(expected: Any, got: Any) -> str | None:
    if isinstance(expected, Raised) and isinstance(got, Raised):
        if expected.type_name == got.type_name or expected.type_name in got.bases:
            return None
        return f"expected {words(expected)}, yours raises {got.type_name}"
    return f"expected {words(expected)}, yours gives {words(got)}"


def _number_difference(expected: float, got: Any, tolerance: float | None) -> str | None:
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return f"expected {words(expected)}, yours is {words(got)}"
    if isinstance(expected, float) and math.isnan(expected) and math.isnan(got):
        return None
    if isinstance(expected, int) and isinstance(got, int) and tolerance is None:
        return None if expected == got else f"expected {expected}, yours is {got}"
    absolute = 1e-6 if tolerance is None else tolerance
    relative = 1e-6 if tolerance is None else 0.0
    if math.isclose(expected, got, rel_tol=relative, abs_tol=absolute):
        return None
    about = "about " if tolerance else ""
    return f"expected {about}{expected:.6g}, yours is {got:.6g}"


def _list_difference(expected: list, got: Any, tolerance: float | None) -> str | None:
    if not isinstance(got, list):
        return f"expected {words(expected)}, yours is {words(got)}"
    if len(expected) != len(got) or all(isinstance(item, str) for item in expected):
        if expected == got:
            return None
        if max(len(expected), len(got)) > MOST_VALUES_SHOWN:
            return _first_difference(expected, got)
        return f"expected {words(expected)}, yours is {words(got)}"
    for index, (one, other) in enumerate(zip(expected, got, strict=True)):
        if said := difference(one, other, tolerance):
            return f"at position {index}: {said}"
    return None


def _first_difference(expected: list, got: list) -> str:
    """Return where two lists part, when they are too long to be shown: their beginnings may be the same."""
    pairs = enumerate(zip(expected, got, strict=False))
    place = next((at for at, (one, other) in pairs if difference(one, other)), min(len(expected), len(got)))
    one, other = (words(items[place]) if place < len(items) else "nothing more" for items in (expected, got))
    lengths = f" ({len(expected)} expected, yours has {len(got)})" if len(expected) != len(got) else ""
    return f"at position {place}: expected {one}, yours is {other}{lengths}"


def _dict_difference(expected: dict, got: Any, tolerance: float | None) -> str | None:
    if not isinstance(got, dict):
        return f"expected {words(expected)}, yours is {words(got)}"
    missing = [key for key in expected if key not in got]
    extra = [key for key in got if key not in expected]
    if missing or extra:
        parts = [f"{', '.join(missing)} missing"] * bool(missing) + [f"{', '.join(extra)} too many"] * bool(extra)
        return f"{'; '.join(parts)} (expected {_names(expected)}, yours has {_names(got)})"
    for key in expected:
        if said := difference(expected[key], got[key], tolerance):
            return f"{key}: {said}"
    return None


def words(value: Any) -> str:
    """Return a short description of a snapshot for a sentence."""
    if isinstance(value, TensorSnapshot):
        if value.values is not None and value.values.numel() <= MOST_VALUES_SHOWN and value.values.dim() <= 1:
            return f"a tensor {_numbers(value.values)}"
        return f"a tensor of shape {value.shape}"
    if isinstance(value, Raised):
        return f"{'an' if value.type_name[:1] in 'AEIOU' else 'a'} {value.type_name}"
    if isinstance(value, Other):
        return f"an object of type {value.type_name}"
    if isinstance(value, dict):
        return f"a dict with {_names(value)}"
    if isinstance(value, list):
        inner = ", ".join(words(item) for item in value[:MOST_VALUES_SHOWN])
        return f"[{inner}{', …' if len(value) > MOST_VALUES_SHOWN else ''}]"
    if isinstance(value, str):
        return value if " " in value else f"'{value}'"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _names(mapping: dict) -> str:
    return ", ".join(mapping) if mapping else "nothing"


def _number(value: torch.Tensor) -> str:
    if not value.is_floating_point():
        return str(value.item())
    return f"{value.item() + 0.0:.5g}"  # -0.0 is shown as 0


def _numbers(values: torch.Tensor) -> str:
    if values.dim() == 0:
        return _number(values)
    return "[" + ", ".join(_number(value) for value in values) + "]"
