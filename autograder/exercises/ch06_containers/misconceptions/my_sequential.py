"""Wrong sequentials. Each changes one decision of a stack that is otherwise as torch's."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Stack(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        for name, layer in self.pairs(layers):
            self.keep(name, layer)

    def pairs(self, layers: tuple) -> list[tuple[str, Any]]:
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            return list(layers[0].items())
        return [(str(number), layer) for number, layer in enumerate(layers)]

    def keep(self, name: str, layer: Any) -> None:
        self.add_module(name, layer)

    def kept(self) -> list[Any]:
        return list(self._modules.values())

    def running(self) -> list[Any]:
        return self.kept()

    def run(self, layer: Any, x: torch.Tensor) -> torch.Tensor:
        return layer(x)

    def part(self, index: slice) -> Any:
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def one(self, index: int) -> Any:
        return self.kept()[index]

    def __len__(self) -> int:
        return len(self.kept())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept())

    def __getitem__(self, index: Any) -> Any:
        return self.part(index) if isinstance(index, slice) else self.one(index)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.running():
            x = self.run(layer, x)
        return x


class PlainList(_Stack):
    def keep(self, name: str, layer: Any) -> None:
        if not isinstance(layer, nn.Module):
            raise TypeError(f"{layer} is no module")
        self.layers = [*getattr(self, "layers", []), layer]

    def kept(self) -> list[Any]:
        return list(getattr(self, "layers", []))

    def part(self, index: slice) -> Any:
        return type(self)(*self.kept()[index])


class InnerList(_Stack):
    def __init__(self, *layers: Any) -> None:
        nn.Module.__init__(self)
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            layers = tuple(layers[0].values())
        self.layers = nn.ModuleList(layers)

    def kept(self) -> list[Any]:
        return list(self.layers)

    def part(self, index: slice) -> Any:
        return type(self)(*self.kept()[index])


class ChildrenOnce(_Stack):
    def running(self) -> list[Any]:
        return list(self.children())


class ForwardCalled(_Stack):
    def run(self, layer: Any, x: torch.Tensor) -> torch.Tensor:
        return layer.forward(x)


class SecondList(_Stack):
    def __init__(self, *layers: Any) -> None:
        super().__init__(*layers)
        self.order = list(self._modules.values())

    def running(self) -> list[Any]:
        return self.order


class SliceIsList(_Stack):
    def part(self, index: slice) -> Any:
        return self.kept()[index]


class SliceRenumbered(_Stack):
    def part(self, index: slice) -> Any:
        return type(self)(*self.kept()[index])


class NothingRefused(_Stack):
    def keep(self, name: str, layer: Any) -> None:
        self._modules[name] = layer


class ReturnInsideLoop(_Stack):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.running():
            x = self.run(layer, x)
            return x
        return x


class NotChained(_Stack):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = x
        for layer in self.running():
            output = self.run(layer, x)
        return output


class NameLookedUp(_Stack):
    def one(self, index: int) -> Any:
        return list(self._modules.values())[0] if index == 0 else self._modules[str(index)]


class CopiesKept(_Stack):
    def keep(self, name: str, layer: Any) -> None:
        super().keep(name, copy.deepcopy(layer))


class NamesDropped(_Stack):
    def pairs(self, layers: tuple) -> list[tuple[str, Any]]:
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            layers = tuple(layers[0].values())
        return super().pairs(layers)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_PLACE = "the section «Where the children land» in this chapter"
_CARD = "the card of this exercise"
_SEQUENTIAL = "the section «What Sequential is» in this chapter"

misconceptions = (
    _misconception(
        "plain_list",
        PlainList,
        "keys of state_dict()",
        "the layers are kept in a plain list",
        "Print the keys of your stack's state_dict. Who would have to know about your list for them to be there?",
        "chapter 0, where the hidden layers never moved",
    ),
    _misconception(
        "inner_list",
        InnerList,
        "keys of state_dict()",
        "the layers are kept in an nn.ModuleList inside, one level too deep",
        "Which word stands in front of the number in each of your keys, and would a file of nn.Sequential have it?",
        _PLACE,
    ),
    _misconception(
        "children_once",
        ChildrenOnce,
        "one layer, twice in the stack",
        "the loop runs over children(), which gives each module once",
        "Put the same layer into your stack twice. How many does `children()` give, and how many does `_modules` hold?",
        _SEQUENTIAL,
    ),
    _misconception(
        "forward_called",
        ForwardCalled,
        "layers whose forward hooks fire",
        "layer.forward(x) is called instead of layer(x)",
        "Register a hook on a layer inside your stack. Which call would have to be made for it to fire?",
        "chapter 5, on what a direct call of forward skips",
    ),
    _misconception(
        "second_list",
        SecondList,
        "output after a layer is replaced",
        "a list beside the registered layers decides what runs, and nobody keeps the two alike",
        "Somebody replaces a layer of your stack. Which of your two records hears of it, and which one runs?",
        _PLACE,
    ),
    _misconception(
        "slice_is_list",
        SliceIsList,
        "net[2:] can be called",
        "a slice is a plain list of layers",
        "What type does `net[2:]` have in nn.Sequential, and what can you do with it that a list cannot?",
        _SEQUENTIAL,
    ),
    _misconception(
        "slice_renumbered",
        SliceRenumbered,
        "keys of net[2:]",
        "a slice gives its layers new names",
        "Compare the keys of `net[2:]` with those of the same slice of an nn.Sequential. Who keeps the names?",
        _SEQUENTIAL,
    ),
    _misconception(
        "nothing_refused",
        NothingRefused,
        "a function instead of a module",
        "the layers are written into _modules, past every check",
        "What happens when somebody hands in `torch.relu`, and when: as the stack is built, or at the first batch?",
        "chapter 1, on the names and types that are refused",
    ),
    _misconception(
        "return_inside_loop",
        ReturnInsideLoop,
        "output in training mode",
        "the return stands inside the loop",
        "How many of your layers have run when `forward` comes back?",
        _CARD,
    ),
    _misconception(
        "not_chained",
        NotChained,
        "output in training mode",
        "every layer gets the first input",
        "What does your second layer receive: the input of the stack, or what the first layer gave?",
        _CARD,
    ),
    _misconception(
        "name_looked_up",
        NameLookedUp,
        "net[-1] is the last layer",
        "the index is turned into a name, and -1 is nobody's name",
        "Which key does your code look for when you ask for `net[-1]`, and which error comes for an index too large?",
        _SEQUENTIAL,
    ),
    _misconception(
        "copies_kept",
        CopiesKept,
        "the layers are the ones handed in",
        "the stack holds copies of its layers",
        "Change a weight of a layer after you have put it into your stack. Does the stack notice?",
        _CARD,
    ),
    _misconception(
        "names_dropped",
        NamesDropped,
        "keys of state_dict()",
        "the names of the OrderedDict are replaced by numbers",
        "You handed in a layer called `first`. Under which key is its weight saved?",
        _SEQUENTIAL,
    ),
)
