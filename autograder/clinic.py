"""The clinic: models that run, or nearly, with faults hidden in them that only inspection shows.

``admit("any text")`` always makes the same patient for the same text, so that everybody can have one of their own.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

FAULTS = {
    "unregistered": "layers in a plain list that no registered attribute knows",
    "untied": "two names that should share one parameter, and do not",
    "leaked_hook": "a forward hook or forward pre-hook that somebody forgot",
    "wrong_mode": "a part that is not in the mode it should be in",
    "frozen_buffer": "running statistics that training cannot move",
    "inplace_under_hook": "an in-place activation that carries a backward hook",
    "not_optimized": "a parameter that asks for a gradient, and that no group of the optimizer holds",
}
FAULTS_OF_ONE_PATIENT = 3
# What stands in the notebook where a student's own id belongs; it has a patient, but is nobody's id.
EXAMPLE_TEXT = "write your student id here"


@dataclass
class Patient:
    """A model, its optimizer, a batch, and the letter that says how the model is meant to be."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    sample: torch.Tensor
    letter: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is to be built: the sizes, the mode, who has which fault, and where the harmless oddities are."""

    seed: int
    width: int
    depth: int
    mode: str
    places: dict[str, int] = field(default_factory=dict)
    variants: dict[str, int] = field(default_factory=dict)


class Block(nn.Module):
    """Linear, BatchNorm, ReLU, Dropout; what is in ``extra`` is added on top."""

    def __init__(self, width: int, inplace: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.act = nn.ReLU(inplace=inplace)
        self.drop = nn.Dropout(0.1)
        self.extra: list[nn.Module] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (rows, width) to the same shape."""
        out = self.drop(self.act(self.norm(self.linear(x))))
        for layer in self.extra:
            out = out + layer(x)
        return out


class Ward(nn.Module):
    """The model of every patient: an embedding, blocks, and a head that shares the embedding's weight."""

    def __init__(self, width: int, depth: int, inplace: int) -> None:
        super().__init__()
        self.embed = nn.Linear(width, width, bias=False)
        self.blocks = nn.ModuleList(Block(width, number == inplace) for number in range(depth))
        self.head = nn.Linear(width, width, bias=False)
        self.adapters: list[nn.Module] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (rows, width) to the same shape."""
        x = self.embed(x)
        for layer in [*self.blocks, *self.adapters]:
            x = layer(x)
        return self.head(x)


def admit(text: str) -> Patient:
    """Return the patient that belongs to a text, for instance to a student's id. Raises TypeError for anything else."""
    return build(own_plan(text))


def own_plan(text: str) -> Plan:
    """Return the plan of the patient that belongs to a text: three faults, chosen by the text alone."""
    if not isinstance(text, str):
        raise TypeError(f"a patient is admitted under a text, such as your student id, not under {text!r}")
    dice = random.Random(hashlib.sha256(text.strip().encode()).digest())
    faults = dice.sample(sorted(FAULTS), FAULTS_OF_ONE_PATIENT)
    variants = {fault: dice.randrange(2) for fault in faults}
    return make_plan(dice.getrandbits(32), variants, dice.choice(("train", "eval")))


def make_plan(seed: int, variants: Mapping[str, int], mode: str) -> Plan:
    """Return the plan of a patient with the faults named; each has two forms, 0 and 1."""
    dice = random.Random(seed)
    depth, width = dice.randint(3, 4), dice.randint(3, 5)
    places = {fault: dice.randrange(depth) for fault in variants}
    return Plan(seed, width, depth, mode, places, dict(variants))


def faults_of(plan: Plan) -> dict[str, list[str]]:
    """Return fault -> sorted paths: the diagnosis that is right for a plan. Faults that are not there are left out."""
    return {fault: sorted(_paths(plan, fault, place)) for fault, place in plan.places.items()}


def _paths(plan: Plan, fault: str, place: int) -> list[str]:
    block, variant = f"blocks.{place}", plan.variants[fault]
    if fault == "wrong_mode":
        return [f"{block}.drop"] if variant == 0 else [block, *(f"{block}.{name}" for name in _PARTS)]
    first, second = {
        "unregistered": (f"{block}.extra", "adapters"),
        "untied": ("head.weight", "blocks.1.linear.weight"),
        "leaked_hook": (f"{block}.norm", f"{block}.drop"),
        "frozen_buffer": (f"{block}.norm", f"{block}.norm"),
        "inplace_under_hook": (f"{block}.act", f"{block}.act"),
        "not_optimized": (f"{block}.linear.bias", f"{block}.norm.weight"),
    }[fault]
    return [second if variant else first]


_PARTS = ("linear", "norm", "act", "drop")


def build(plan: Plan) -> Patient:
    """Return the patient of a plan. The same plan gives the same numbers; the global random state is left alone."""
    with torch.random.fork_rng([]):
        torch.manual_seed(plan.seed)
        # The harmless in-place activation stands next to the harmful one, if there is one.
        model = Ward(plan.width, plan.depth, (plan.places.get("inplace_under_hook", 0) + 1) % plan.depth)
        _tie_and_hide(model, plan)
        _odd_but_healthy(model, plan)
        _infect(model, plan)
        sample = torch.randn(6, plan.width)
    optimizer = _optimizer(model, plan)
    _set_mode(model, plan)
    letter = {
        "mode": plan.mode,
        "tied": [("embed.weight", "head.weight"), ("blocks.0.linear.weight", "blocks.1.linear.weight")],
        "hooks": "the backward hooks are the owner's monitors; there should be no forward hooks",
    }
    return Patient(model, optimizer, sample, letter)


def _tie_and_hide(model: Any, plan: Plan) -> None:
    model.head.weight = model.embed.weight
    model.blocks[1].linear.weight = model.blocks[0].linear.weight
    if "untied" in plan.places:
        part = model.blocks[1].linear if plan.variants["untied"] else model.head
        # Equal values: only the identity tells that these are two.
        part.weight = nn.Parameter(part.weight.detach().clone())
    if "unregistered" in plan.places:
        layers = [nn.Linear(plan.width, plan.width) for _ in range(2)]
        if plan.variants["unregistered"]:
            model.adapters = layers
        else:
            model.blocks[plan.places["unregistered"]].extra = layers


def _odd_but_healthy(model: Any, plan: Plan) -> None:
    # Registered layers may stand in a list too; None is a way to average; a monitor may watch an ordinary ReLU.
    model.order = list(model.blocks)
    spared = next(n for n in range(plan.depth) if n != plan.places.get("frozen_buffer"))
    model.blocks[spared].norm.momentum = None
    _quiet_block(model, plan).act.register_full_backward_hook(_monitor)
    _unheld_block(model, plan).norm.bias.requires_grad_(False)


def _quiet_block(model: Any, plan: Plan) -> Any:
    return model.blocks[(plan.places.get("inplace_under_hook", 0) + 2) % plan.depth]


def _unheld_block(model: Any, plan: Plan) -> Any:
    return model.blocks[(plan.places.get("not_optimized", 0) + 1) % plan.depth]


def _infect(model: Any, plan: Plan) -> None:
    if "leaked_hook" in plan.places:
        block = model.blocks[plan.places["leaked_hook"]]
        if plan.variants["leaked_hook"]:
            block.drop.register_forward_pre_hook(_forgotten_before)
        else:
            block.norm.register_forward_hook(_forgotten)
    if "frozen_buffer" in plan.places:
        model.blocks[plan.places["frozen_buffer"]].norm.momentum = 0.0
    if "inplace_under_hook" in plan.places:
        block = model.blocks[plan.places["inplace_under_hook"]]
        block.act.inplace = True
        block.act.register_full_backward_hook(_monitor)


def _optimizer(model: Any, plan: Plan) -> torch.optim.Optimizer:
    left_out = set()
    if "not_optimized" in plan.places:
        left_out.add(_paths(plan, "not_optimized", plan.places["not_optimized"])[0])
    held = {name: p for name, p in model.named_parameters() if p.requires_grad and name not in left_out}
    vectors = [p for p in held.values() if p.dim() == 1]
    matrices = [p for p in held.values() if p.dim() > 1]
    return torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=1e-3)


def _set_mode(model: Any, plan: Plan) -> None:
    model.train(plan.mode == "train")
    if "wrong_mode" in plan.places:
        for path in _paths(plan, "wrong_mode", plan.places["wrong_mode"]):
            model.get_submodule(path).training = plan.mode != "train"


def _monitor(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
    return None


def _forgotten(module: nn.Module, args: Any, output: Any) -> None:
    return None


def _forgotten_before(module: nn.Module, args: Any) -> None:
    return None
