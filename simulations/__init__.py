"""Simulations: real torch recorded once and replayed anywhere, and recorded again when a control moves."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "RegistrationProblem": "registration_problem",
    "ModuleStructure": "module_structure",
    "ParameterOrTensor": "parameter_or_tensor",
    "BatchNormInternals": "batchnorm_internals",
    "HooksFiring": "hooks_firing",
    "CallOrForward": "call_or_forward",
    "Containers": "containers",
    "ModelInspector": "model_inspector",
    "show": "model_inspector",
    "TraceScriptExport": "trace_script_export",
    "LifeOfAModule": "life_of_a_module",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # Loaded on first use: a chapter pays for its own simulation only.
    if name not in _HOMES:
        raise AttributeError(f"module 'simulations' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"simulations.{_HOMES[name]}"), name)
