"""Right diagnoses, each with its own way to look."""

from __future__ import annotations

import copy

import torch
from torch import nn

from autograder.clinic import admit


def own_grace():
    return "grace", by_one_walk(admit("grace"))


def own_ada():
    """By hand: what the three faults of this patient are."""
    return ("ada", {fault: paths for fault, paths in with_helpers(admit("ada")).items() if paths})


def own_linus():
    return ["linus", with_experiments(admit("linus"))]


def by_one_walk(patient):
    found = {}

    def add(fault, path):
        found.setdefault(fault, []).append(path)

    model = patient.model
    all_modules = set(model.modules())
    in_optimizer = {p for g in patient.optimizer.param_groups for p in g["params"]}
    for path, module in model.named_modules():
        for key, value in module.__dict__.items():
            if isinstance(value, list) and any(isinstance(v, nn.Module) and v not in all_modules for v in value):
                add("unregistered", f"{path}.{key}" if path else key)
        if len(module._forward_hooks) + len(module._forward_pre_hooks):
            add("leaked_hook", path)
        if module.training is (patient.letter["mode"] == "eval"):
            add("wrong_mode", path)
        if hasattr(module, "running_mean") and module.momentum is not None and module.momentum == 0:
            add("frozen_buffer", path)
        if getattr(module, "inplace", False) and module._backward_hooks:
            add("inplace_under_hook", path)
    for one, other in patient.letter["tied"]:
        if model.get_parameter(one) is not model.get_parameter(other):
            add("untied", other)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter not in in_optimizer:
            add("not_optimized", name)
    return found


def _attribute_paths(model):
    for path, module in model.named_modules():
        for key, value in vars(module).items():
            if not key.startswith("_"):
                yield ".".join(filter(None, (path, key))), value


def with_helpers(patient):
    model = patient.model
    ids = {id(m) for m in model.modules()}
    held = [id(p) for g in patient.optimizer.param_groups for p in g["params"]]
    expected = {"train": True, "eval": False}[patient.letter["mode"]]
    pointers = {n: p.data_ptr() for n, p in model.named_parameters(remove_duplicate=False)}
    parts = list(model.named_modules())
    return {
        "unregistered": tuple(
            path
            for path, value in _attribute_paths(model)
            if isinstance(value, (list, tuple)) and [v for v in value if isinstance(v, nn.Module) and id(v) not in ids]
        ),
        "untied": {b for a, b in patient.letter["tied"] if pointers[a] != pointers[b]},
        "leaked_hook": [path for path, m in parts if {**m._forward_hooks, **m._forward_pre_hooks}],
        "wrong_mode": [path for path, m in parts if m.training ^ expected],
        "frozen_buffer": [path for path, m in parts if type(m) is nn.BatchNorm1d and m.momentum == 0],
        "inplace_under_hook": [path for path, m in parts if m._backward_hooks and getattr(m, "inplace", None)],
        "not_optimized": [n for n, p in model.named_parameters() if id(p) not in held and p.requires_grad],
    }


def with_experiments(patient):
    """Statistics and in-place layers are tried out, on copies of the parts."""
    found = by_one_walk(patient)
    found["frozen_buffer"], found["inplace_under_hook"] = [], []
    for path, module in patient.model.named_modules():
        if isinstance(module, nn.BatchNorm1d):
            twin = copy.deepcopy(module).train()
            device = twin.weight.device
            twin(torch.randn(8, twin.num_features, device=device) + 3)
            if torch.equal(twin.running_mean, module.running_mean):
                found["frozen_buffer"].append(path)
        elif isinstance(module, nn.ReLU):
            try:
                copy.deepcopy(module)(torch.ones(2, 2, requires_grad=True) * 1)
            except RuntimeError:
                found["inplace_under_hook"].append(path)
    return found


right_answers = [(own_grace, by_one_walk), (own_ada, with_helpers), (own_linus, with_experiments)]
