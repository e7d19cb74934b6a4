"""Wrong walks. Each takes one decision otherwise than ``nn.Module.named_parameters``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception

Pairs = Iterator[tuple[str, Any]]


class _Walk:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __call__(self, module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> Pairs:
        return self.walk(module, prefix, [] if remove_duplicate else None)

    def walk(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        yield from self.own(module, path, met)
        yield from self.below(module, path, met)

    def own(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        for name, value in module._parameters.items():
            if self.is_listed(value) and not (met is not None and self.was_met(value, met)):
                if met is not None:
                    met.append(value)
                yield self.joined(path, name), value

    def below(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        for name, child in module._modules.items():
            if child is not None:
                yield from self.walk(child, self.path_of_child(path, name), self.handed_down(met))

    def is_listed(self, value: Any) -> bool:
        return value is not None

    def was_met(self, value: Any, met: list[Any]) -> bool:
        return any(value is other for other in met)

    def joined(self, path: str, name: str) -> str:
        return f"{path}.{name}" if path else name

    def path_of_child(self, path: str, name: str) -> str:
        return self.joined(path, name)

    def handed_down(self, met: list[Any] | None) -> list[Any] | None:
        return met


class _YieldFromForgotten(_Walk):
    def below(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        for name, child in module._modules.items():
            if child is not None:
                self.walk(child, self.joined(path, name), met)
        yield from ()


class _OneLevelDown(_Walk):
    def below(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        for name, child in module._modules.items():
            if child is not None:
                yield from self.own(child, self.joined(path, name), met)


class _LastNameOnly(_Walk):
    def path_of_child(self, path: str, name: str) -> str:
        return name


class _LeadingDot(_Walk):
    def joined(self, path: str, name: str) -> str:
        return f"{path}.{name}"


class _EverythingTwice(_Walk):
    def was_met(self, value: Any, met: list[Any]) -> bool:
        return False


class _MemoryOfEachModule(_Walk):
    def handed_down(self, met: list[Any] | None) -> list[Any] | None:
        return None if met is None else []


class _ComparedByValue(_Walk):
    def was_met(self, value: Any, met: list[Any]) -> bool:
        return any(value.shape == other.shape and torch.equal(value, other) for other in met)


class _ComparedByAddress(_Walk):
    def was_met(self, value: Any, met: list[Any]) -> bool:
        return any(value.data_ptr() == other.data_ptr() for other in met)


class _TrainableOnly(_Walk):
    def is_listed(self, value: Any) -> bool:
        return value is not None and value.requires_grad


class _EmptySlotsToo(_Walk):
    def is_listed(self, value: Any) -> bool:
        return True

    def was_met(self, value: Any, met: list[Any]) -> bool:
        return value is not None and super().was_met(value, met)


class _ChildrenFirst(_Walk):
    def walk(self, module: nn.Module, path: str, met: list[Any] | None) -> Pairs:
        yield from self.below(module, path, met)
        yield from self.own(module, path, met)


class _RememberedForEver(_Walk):
    def __init__(self) -> None:
        self.met: list[Any] = []

    def __call__(self, module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> Pairs:
        # As a mutable default argument does it. Kept short: what was met in another tree is of no interest here.
        del self.met[:-200]
        return self.walk(module, prefix, self.met if remove_duplicate else None)


class _AlwaysWithoutDuplicates(_Walk):
    def __call__(self, module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> Pairs:
        return super().__call__(module, prefix, True)


def _from_state_dict(module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> Pairs:
    for name, value in module.state_dict().items():
        yield (f"{prefix}.{name}" if prefix else name), value


def _function(walk: _Walk) -> Any:
    def my_named_parameters(module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> Pairs:
        return walk(module, prefix, remove_duplicate)

    return my_named_parameters


def _misconception(name: str, walk: Any, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    made = _function(walk) if isinstance(walk, _Walk) else walk
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "yield_from_forgotten",
        _YieldFromForgotten(),
        "names",
        "the walk calls itself for each child and drops what comes back",
        "A generator that is called and not looped over: how many of its lines run?",
        "the section «The walk» in this chapter",
    ),
    _misconception(
        "one_level_down",
        _OneLevelDown(),
        "names",
        "the walk ends at the children of the root",
        "Which names are missing from your list, and how many dots do they have?",
        "the section «Paths» in this chapter",
    ),
    _misconception(
        "last_name_only",
        _LastNameOnly(),
        "names",
        "a child is told its own name and not the path to it",
        "Two encoders could each have a layer called `query`. What would tell their weights apart in your list?",
        "the section «Paths» in this chapter",
    ),
    _misconception(
        "leading_dot",
        _LeadingDot(),
        "names",
        "the dot is put in even where nothing stands before it",
        "What does your function put between an empty prefix and the name?",
        "the section «Paths» in this chapter",
    ),
    _misconception(
        "every_place_listed",
        _EverythingTwice(),
        "names",
        "a parameter in two places is listed twice",
        "Tie two weights and count what named_parameters() lists. What would an optimizer say to a list that "
        "holds the same tensor twice?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        "memory_of_each_module",
        _MemoryOfEachModule(),
        "names",
        "each module remembers what it met, and the walk does not",
        "The embedding sits in one child and the output layer in another. Which of them knows what the other has "
        "listed?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        "compared_by_value",
        _ComparedByValue(),
        "names",
        "two parameters with equal values are taken for one",
        "Two fresh LayerNorm layers start with equal weights. Will they still be equal after a step?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        "compared_by_address",
        _ComparedByAddress(),
        "names",
        "two parameters over the same memory are taken for one",
        "Make two parameters from one tensor. Are they one object or two, and what does each of them say when you ask "
        "for its address?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        "trainable_only",
        _TrainableOnly(),
        "names",
        "frozen parameters are left out",
        "Freeze a layer. Does named_parameters() get shorter?",
        "the section «The walk» in this chapter: what is listed, and what is not?",
    ),
    _misconception(
        "empty_slots_too",
        _EmptySlotsToo(),
        "names",
        "a slot that holds None is listed",
        "A linear layer is built without a bias. What does named_parameters() list of it, and what does `_parameters` "
        "hold?",
        "the section «An empty slot» in this chapter",
    ),
    _misconception(
        "children_first",
        _ChildrenFirst(),
        "names",
        "the children's parameters come before the module's own",
        "An optimizer stores its state by position. Where does the root's own parameter stand in torch's list?",
        "the section «The walk» in this chapter",
    ),
    _misconception(
        "remembered_for_ever",
        _RememberedForEver(),
        "names on a second walk",
        "what was met is remembered from one call to the next",
        "Call your function twice on the same module. When is the place made where it remembers what it met?",
        "Python's tutorial on default argument values",
    ),
    _misconception(
        "duplicates_always_removed",
        _AlwaysWithoutDuplicates(),
        "names with remove_duplicate=False",
        "remove_duplicate is accepted and not read",
        "Which of your function's arguments does no line of its body read?",
        "the card of this exercise",
    ),
    _misconception(
        "from_state_dict",
        _from_state_dict,
        "which parameters, in which order",
        "the pairs are taken from state_dict()",
        "Which names does state_dict() hold besides parameters, and is what it holds the parameter itself?",
        "the section «The file knows names» in this chapter",
    ),
)
