"""Diagnoses that miss a fault or cry wolf. Each gets one examination wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.clinic import EXAMPLE_TEXT, FAULTS, Patient, admit
from autograder.exercise import Misconception


class _Examination:
    """The examinations, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, patient: Patient) -> None:
        self.patient, self.model, self.letter = patient, patient.model, patient.letter
        self.modules = dict(self.model.named_modules())

    def unregistered(self) -> Iterator[str]:
        known = {id(part) for part in self.modules.values()}
        for path, part in self.modules.items():
            for name, value in vars(part).items():
                if isinstance(value, list) and any(self.is_hidden(one, known) for one in value):
                    yield f"{path}.{name}" if path else name

    def is_hidden(self, value: Any, known: set[int]) -> bool:
        return isinstance(value, nn.Module) and id(value) not in known

    def untied(self) -> Iterator[str]:
        names = dict(self.model.named_parameters(remove_duplicate=False))
        return (second for first, second in self.letter["tied"] if not self.is_one(names[first], names[second]))

    def is_one(self, first: torch.Tensor, second: torch.Tensor) -> bool:
        return first is second

    def leaked_hook(self) -> Iterator[str]:
        return (path for path, part in self.modules.items() if part._forward_hooks or part._forward_pre_hooks)

    def wrong_mode(self) -> Iterator[str]:
        wanted = self.letter["mode"] == "train"
        return (path for path, part in self.modules.items() if part.training != wanted)

    def frozen_buffer(self) -> Iterator[str]:
        return (path for path, part in self.modules.items() if getattr(part, "momentum", 1) == 0.0)

    def inplace_under_hook(self) -> Iterator[str]:
        return (p for p, part in self.modules.items() if getattr(part, "inplace", False) and part._backward_hooks)

    def not_optimized(self) -> Iterator[str]:
        held = {id(p) for group in self.groups() for p in group["params"]}
        return (name for name, p in self.model.named_parameters() if self.is_asking(p) and id(p) not in held)

    def groups(self) -> list[dict]:
        return self.patient.optimizer.param_groups

    def is_asking(self, parameter: nn.Parameter) -> bool:
        return parameter.requires_grad

    def run(self) -> dict[str, list[str]]:
        return {fault: list(getattr(self, fault)()) for fault in FAULTS}


class EveryListWithModules(_Examination):
    def is_hidden(self, value: Any, known: set[int]) -> bool:
        return isinstance(value, nn.Module)


class RootAttributesOnly(_Examination):
    def unregistered(self) -> Iterator[str]:
        return (path for path in super().unregistered() if "." not in path)


class EqualValues(_Examination):
    def is_one(self, first: torch.Tensor, second: torch.Tensor) -> bool:
        return torch.equal(first, second)


class ForwardHooksOnly(_Examination):
    def leaked_hook(self) -> Iterator[str]:
        return (path for path, part in self.modules.items() if part._forward_hooks)


class EveryHook(_Examination):
    def leaked_hook(self) -> Iterator[str]:
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
        return (path for path, part in self.modules.items() if any(getattr(part, name) for name in hooks))


class TrainingExpected(_Examination):
    def wrong_mode(self) -> Iterator[str]:
        return (path for path, part in self.modules.items() if not part.training)


class DirectChildrenOnly(_Examination):
    def wrong_mode(self) -> Iterator[str]:
        children = ["", *(name for name, _ in self.model.named_children())]
        return (path for path in super().wrong_mode() if path in children)


class FalsyMomentum(_Examination):
    def frozen_buffer(self) -> Iterator[str]:
        return (p for p, part in self.modules.items() if isinstance(part, nn.BatchNorm1d) and not part.momentum)


class BuffersTriedOut(_Examination):
    """Runs the patient itself to see which statistics move."""

    def frozen_buffer(self) -> Iterator[str]:
        norms = {path: part for path, part in self.modules.items() if isinstance(part, nn.BatchNorm1d)}
        for path, norm in norms.items():
            mode, before = norm.training, norm.running_mean.clone()
            norm.train()(1 + torch.randn(4, norm.num_features).to(before))
            norm.train(mode)
            if torch.equal(before, norm.running_mean):
                yield path


class PatientCalled(_Examination):
    """Calls the patient itself, to see whether it runs."""

    def run(self) -> dict[str, list[str]]:
        self.model(self.patient.sample)
        return super().run()


class EveryInplace(_Examination):
    def inplace_under_hook(self) -> Iterator[str]:
        return (path for path, part in self.modules.items() if getattr(part, "inplace", False))


class FirstGroupOnly(_Examination):
    def groups(self) -> list[dict]:
        return super().groups()[:1]


class FrozenExpected(_Examination):
    def is_asking(self, parameter: nn.Parameter) -> bool:
        return True


class ComparedByValue(_Examination):
    def not_optimized(self) -> Iterator[str]:
        held = list(itertools.chain.from_iterable(group["params"] for group in self.groups()))
        return (name for name, p in self.model.named_parameters() if p.requires_grad and p not in held)


def _right_own() -> tuple[str, dict[str, list[str]]]:
    return "a student", _Examination(admit("a student")).run()


def _own_first_finding() -> tuple[str, dict[str, list[str]]]:
    """Stops looking at the first fault that is found."""
    text, named = _right_own()
    first = next(fault for fault, paths in named.items() if paths)
    return text, {first: named[first]}


def _own_of_the_example() -> tuple[str, dict[str, list[str]]]:
    return EXAMPLE_TEXT, _Examination(admit(EXAMPLE_TEXT)).run()


def _function(kind: type[_Examination]) -> Callable:
    def diagnose(patient: Patient) -> dict[str, list[str]]:
        return kind(patient).run()

    diagnose.__name__ = kind.__name__
    return diagnose


def _misconception(kind: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_right_own, _function(kind)))


_SECTION = "the section «Seven faults and their traces» in this chapter"

misconceptions = (
    Misconception(
        "stopped_at_the_first_finding",
        "one fault is named, and the others are not looked for",
        "Your patient has three faults. Which of the seven examinations have you not done yet?",
        _SECTION,
        "your own patient: places that you missed",
        (_own_first_finding, _function(_Examination)),
    ),
    Misconception(
        "patient_of_the_example",
        "the patient of the notebook's example is diagnosed",
        "Everybody who leaves the example as it is gets the same patient. Which text makes one that is yours alone?",
        _SECTION,
        "my_diagnosis() gives your id and a dict",
        (_own_of_the_example, _function(_Examination)),
    ),
    _misconception(
        EveryListWithModules,
        "every_list_taken_for_a_hiding_place",
        "unregistered",
        "a list of registered modules counts as hidden",
        "A module may stand in a list and be registered as well. How do you tell that two names mean one object?",
        "chapter 0, «Looking for what is missing»",
    ),
    _misconception(
        RootAttributesOnly,
        "only_the_root_is_searched",
        "unregistered",
        "lists inside the blocks are not looked at",
        "Whose attributes did you look at: the model's, or those of every part of it?",
        "chapter 0, «Looking for what is missing»",
    ),
    _misconception(
        EqualValues,
        "equal_values_taken_for_a_tie",
        "untied",
        "two tensors with equal numbers count as one",
        "Two weights start with the same numbers. After one step of training, are they still equal?",
        "chapter 2, «One weight in two places»",
    ),
    _misconception(
        ForwardHooksOnly,
        "pre_hooks_overlooked",
        "leaked_hook",
        "only one registry of hooks is read",
        "How many kinds of forward hooks does a module keep, and in how many dicts?",
        "chapter 4, «Handles»",
    ),
    _misconception(
        EveryHook,
        "monitors_taken_for_leaks",
        "leaked_hook",
        "the owner's backward hooks are reported as well",
        "What does the letter say about the hooks that should be there?",
        _SECTION,
    ),
    _misconception(
        TrainingExpected,
        "training_mode_expected_always",
        "wrong_mode",
        "eval mode counts as a fault, whatever the owner wants",
        "Read `patient.letter`. Is every patient meant to be in training mode?",
        _SECTION,
    ),
    _misconception(
        DirectChildrenOnly,
        "modes_of_direct_children_only",
        "wrong_mode",
        "the flags further down are not read",
        "How many flags named `training` has the patient, and how many did you read?",
        "chapter 3, «train() and eval()»",
    ),
    _misconception(
        FalsyMomentum,
        "none_taken_for_zero",
        "frozen_buffer",
        "momentum None counts as no momentum",
        "What does BatchNorm do when its momentum is None, and is that standing still?",
        "chapter 3, «Which variance goes where»",
    ),
    _misconception(
        BuffersTriedOut,
        "patient_operated_on",
        "the patient is left as it was",
        "the examination moves the statistics of the patient itself",
        "You ran a BatchNorm to see whether its mean moves. It did. Whose mean was that?",
        _SECTION,
    ),
    _misconception(
        PatientCalled,
        "patient_called",
        "the patient is left as it was",
        "the patient itself is called, which moves its statistics and stops at one of the faults",
        "One call of the patient: what does it move in training mode, and which of the seven faults would stop it? "
        "What else of the patient could you call?",
        _SECTION,
    ),
    _misconception(
        EveryInplace,
        "every_inplace_layer_reported",
        "inplace_under_hook",
        "an in-place activation alone counts as a fault",
        "Which of the in-place layers of this patient would raise in a forward, and what else do they carry?",
        "chapter 4, «Where backward hooks stumble»",
    ),
    _misconception(
        FirstGroupOnly,
        "first_group_only",
        "not_optimized",
        "only one group of the optimizer is read",
        "How many groups has `patient.optimizer`, and what is in the second?",
        "the section «Groups» in this chapter",
    ),
    _misconception(
        FrozenExpected,
        "frozen_parameters_missed",
        "not_optimized",
        "frozen parameters are said to be missing",
        "Should an optimizer hold a parameter that asks for no gradient?",
        _SECTION,
    ),
    _misconception(
        ComparedByValue,
        "membership_by_value",
        "not_optimized",
        "`in` compares tensors by their values",
        "What does `tensor in list` ask of each element, identity or equality, and what is the answer for two tensors?",
        "chapter 2, «One weight in two places»",
    ),
)
