"""Searches that miss something or cry wolf. Each changes one decision of a walk that is otherwise right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Search:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    containers: tuple[type, ...] = (list, tuple, dict)
    deepest = 100

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.registered = self.known()
        self.found: list[str] = []

    def known(self) -> set[int]:
        return {id(part) for part in self.module.modules()} | {id(p) for _, p in self.module.named_parameters()}

    def places(self) -> Iterable[tuple[str, nn.Module]]:
        return self.module.named_modules()

    def is_registered(self, value: Any) -> bool:
        return id(value) in self.registered

    def is_weight(self, value: Any) -> bool:
        return isinstance(value, nn.Parameter) or (
            isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad
        )

    def is_skipped(self, name: str) -> bool:
        return False

    def path(self, prefix: str, name: str) -> str:
        return f"{prefix}.{name}" if prefix else name

    def look(self, value: Any, path: str, depth: int = 0) -> None:
        if self.is_registered(value):
            return
        if isinstance(value, nn.Module) or self.is_weight(value):
            self.found.append(path)
        elif isinstance(value, self.containers) and depth < self.deepest:
            for key, item in self.items(value):
                self.look(item, f"{path}.{key}", depth + 1)

    def items(self, value: Any) -> Iterator[tuple[Any, Any]]:
        return iter(value.items()) if isinstance(value, dict) else iter(enumerate(value))

    def run(self) -> list[str]:
        for prefix, part in self.places():
            for name, value in vars(part).items():
                # What torch keeps for itself is reached by its own walks.
                if name in ("_parameters", "_modules", "_buffers") or self.is_skipped(name):
                    continue
                self.look(value, self.path(prefix, name))
        return self.found


class ListsOnly(_Search):
    containers = (list,)


class OneLevelDeep(_Search):
    deepest = 1


class RootOnly(_Search):
    def places(self) -> Iterable[tuple[str, nn.Module]]:
        return [("", self.module)]


class ParametersOnly(_Search):
    def is_weight(self, value: Any) -> bool:
        return isinstance(value, nn.Parameter)


class EveryTensor(_Search):
    def is_weight(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)


class EveryGradient(_Search):
    def is_weight(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and (value.requires_grad or isinstance(value, nn.Parameter))


class TrainableOnly(_Search):
    def is_weight(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad


class InsidesListed(_Search):
    def look(self, value: Any, path: str, depth: int = 0) -> None:
        super().look(value, path, depth)
        if isinstance(value, nn.Module) and not self.is_registered(value):
            self.found += [f"{path}.{name}" for name, _ in value.named_parameters()]


class TrustsParameters(_Search):
    def known(self) -> set[int]:
        return {id(part) for part in self.module.modules()} | {id(p) for p in self.module.parameters()}

    def is_registered(self, value: Any) -> bool:
        if isinstance(value, nn.Module) and list(value.parameters()):
            return id(value) in self.registered or all(id(p) in self.registered for p in value.parameters())
        return super().is_registered(value)


class RegisteredForgotten(_Search):
    def is_registered(self, value: Any) -> bool:
        return False


class LeadingDot(_Search):
    def path(self, prefix: str, name: str) -> str:
        return f"{prefix}.{name}"


class UnderscoreSkipped(_Search):
    def is_skipped(self, name: str) -> bool:
        return name.startswith("_")


def _misconception(
    name: str, search: type[_Search], rejected_by: str, summary: str, question: str, read: str
) -> Misconception:
    def find_orphans(module: nn.Module) -> list[str]:
        return search(module).run()

    return Misconception(name, summary, question, read, rejected_by, (find_orphans,))


_LOOKING = "the section on looking for what is missing in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "lists_only",
        ListsOnly,
        "layers in a tuple",
        "only lists are looked into",
        "Which other containers that Python brings along can hold a layer, and what does your function do with them?",
        _CARD,
    ),
    _misconception(
        "one_level_deep",
        OneLevelDeep,
        "containers inside containers",
        "a container inside a container is not opened",
        "What does your function do with an item that is a list itself? How many levels would you have to write out?",
        _LOOKING,
    ),
    _misconception(
        "root_only",
        RootOnly,
        "orphans of registered children",
        "only the outermost module's attributes are looked at",
        "A registered block keeps a plain list of its own. Whose `vars` would show it?",
        _LOOKING,
    ),
    _misconception(
        "parameters_only",
        ParametersOnly,
        "tensors that require a gradient",
        "only an nn.Parameter counts as a weight",
        "A plain tensor with `requires_grad` switched on collects gradients. Does your function know it for a weight?",
        "the section on gradients that nobody uses in this chapter",
    ),
    _misconception(
        "every_tensor",
        EveryTensor,
        "plain on purpose",
        "every tensor outside the registries is reported",
        "A table of constants is a tensor too. What tells a weight that somebody wants to train from a constant?",
        _CARD,
    ),
    _misconception(
        "every_gradient",
        EveryGradient,
        "a result that was kept",
        "a result that requires a gradient is taken for a weight",
        "A weight is where a gradient ends, a result is where it passes through. Which attribute of a tensor says so?",
        _LOOKING,
    ),
    _misconception(
        "trainable_only",
        TrainableOnly,
        "parameters in a list",
        "a frozen nn.Parameter is not taken for a weight",
        "One `nn.Parameter` of that list is frozen. Is it a constant for that, or would you miss it in the file?",
        "the section «A weight or a result?» in this chapter",
    ),
    _misconception(
        "insides_listed",
        InsidesListed,
        "layers in a plain list",
        "what an orphan module holds is listed beside the module itself",
        "Register the layers you found and ask again: how many of your lines are gone? How many of them did the reader "
        "need?",
        _CARD,
    ),
    _misconception(
        "trusts_parameters",
        TrustsParameters,
        "parameters() written by hand",
        "what parameters() returns is taken for registered",
        "Anyone may override `parameters()`. Which other walk would still show you what is in the file?",
        "the section on the list that works in this chapter",
    ),
    _misconception(
        "registered_forgotten",
        RegisteredForgotten,
        "registered layers in a list as well",
        "everything found in a container is reported, registered or not",
        "The same layer may be an attribute and stand in a list. How do you tell that two names mean one object?",
        _LOOKING,
    ),
    _misconception(
        "leading_dot",
        LeadingDot,
        "layers in a plain list",
        "the paths of the root's own attributes begin with a dot",
        "Print the first path of `named_modules()`. What does your line put in front of the name when that path is "
        "empty?",
        _LOOKING,
    ),
    _misconception(
        "underscore_skipped",
        UnderscoreSkipped,
        "an attribute with an underscore",
        "attributes that start with an underscore are skipped",
        "You kept torch's own attributes out by their underscore. Who else may start a name that way?",
        _LOOKING,
    ),
)
