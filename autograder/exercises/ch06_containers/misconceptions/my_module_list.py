"""Wrong module lists. Each changes one decision of a list that is otherwise as torch's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from autograder.exercise import Misconception


class _List(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__()
        self.replace_all(list(modules))

    def kept(self) -> list[Any]:
        return list(self._modules.values())

    def replace_all(self, modules: list[Any]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def part(self, index: slice) -> Any:
        return type(self)(self.kept()[index])

    def one(self, index: int) -> Any:
        return self.kept()[index]

    def __len__(self) -> int:
        return len(self.kept())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.kept())

    def __getitem__(self, index: Any) -> Any:
        return self.part(index) if isinstance(index, slice) else self.one(index)

    def __setitem__(self, index: int, module: nn.Module) -> None:
        modules = self.kept()
        modules[index] = module
        self.replace_all(modules)

    def __delitem__(self, index: int) -> None:
        modules = self.kept()
        del modules[index]
        self.replace_all(modules)

    def append(self, module: nn.Module) -> None:
        self.insert(len(self), module)

    def extend(self, modules: Iterable[nn.Module]) -> None:
        for module in modules:
            self.append(module)

    def insert(self, index: int, module: nn.Module) -> None:
        modules = self.kept()
        modules.insert(index, module)
        self.replace_all(modules)


class ListInside(_List):
    def kept(self) -> list[Any]:
        return list(self.items)

    def replace_all(self, modules: list[Any]) -> None:
        if not all(isinstance(module, nn.Module) for module in modules):
            raise TypeError("something here is no module")
        self.items = modules


class ListSubclass(list):
    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return type(self)(found) if isinstance(index, slice) else found


class TwoRecords(_List):
    """Iterates over a list of its own and registers in the constructor only."""

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__(modules)
        self.order = list(self._modules.values())

    def kept(self) -> list[Any]:
        return list(self.order) if "order" in self.__dict__ else super().kept()

    def replace_all(self, modules: list[Any]) -> None:
        if "order" in self.__dict__:
            self.order = modules
        else:
            super().replace_all(modules)


class SameListKept(_List):
    """Keeps the very list that was handed in and trusts it."""

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        super().__init__(modules := modules if isinstance(modules, list) else list(modules))
        self.order = modules

    def kept(self) -> list[Any]:
        return list(self.order) if "order" in self.__dict__ else super().kept()

    def replace_all(self, modules: list[Any]) -> None:
        super().replace_all(modules)
        if "order" in self.__dict__:
            self.order = modules


class GapsLeft(_List):
    def __delitem__(self, index: int) -> None:
        delattr(self, list(self._modules)[index])

    def append(self, module: nn.Module) -> None:
        self.add_module(str(len(self)), module)


class GapUntilTheNextChange(_List):
    def __delitem__(self, index: int) -> None:
        delattr(self, list(self._modules)[index])


class ChildrenWalked(_List):
    def __iter__(self) -> Iterator[Any]:
        return self.children()


class InsertOverwrites(_List):
    def insert(self, index: int, module: nn.Module) -> None:
        self.add_module(str(index), module)


class NameLookedUp(_List):
    def one(self, index: int) -> Any:
        return self._modules[str(index)]


class SliceIsList(_List):
    def part(self, index: slice) -> Any:
        return self.kept()[index]


class SortedAsText(_List):
    def kept(self) -> list[Any]:
        return [self._modules[name] for name in sorted(self._modules)]


class LengthAsked(_List):
    def __init__(self, modules: Any = ()) -> None:
        nn.Module.__init__(self)
        self.replace_all([modules[number] for number in range(len(modules))])


class NothingRefused(_List):
    def replace_all(self, modules: list[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(number): module for number, module in enumerate(modules)})


class OneLevelTooDeep(_List):
    def __init__(self, modules: Iterable[Any] = ()) -> None:
        nn.Module.__init__(self)
        self.items = nn.ModuleList()
        self.replace_all(list(modules))

    def kept(self) -> list[Any]:
        return list(self.items)

    def replace_all(self, modules: list[Any]) -> None:
        self.items = nn.ModuleList(modules)


class ExtendAppends(_List):
    def extend(self, modules: Any) -> None:
        for module in modules:
            last = module
        self.append(last)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_PLACE = "the section «Where the children land» in this chapter"
_LIST = "the section «What a ModuleList does that a list does not» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "list_inside",
        ListInside,
        "keys of state_dict()",
        "the layers are kept in a plain list inside the module",
        "Print the keys of your list's state_dict. Who would have to know about the list inside for them to be there?",
        "chapter 0, where the hidden layers never moved",
    ),
    _misconception(
        "list_subclass",
        ListSubclass,
        "it can be assigned to a model",
        "a subclass of Python's list, which is no module",
        "Assign your list to an attribute of a model. What does the model's `__setattr__` ask about the value?",
        _LIST,
    ),
    _misconception(
        "two_records",
        TwoRecords,
        "after append",
        "a list of its own is kept up to date, the registered names are not",
        "Append a layer, then print the keys of the state_dict. Did the layer reach both of your records?",
        _PLACE,
    ),
    _misconception(
        "same_list_kept",
        SameListKept,
        "after an append to the Python list it was made from",
        "the Python list that was handed in is kept, and shared with whoever made it",
        "The caller goes on using the list you were given. Whose list is it now?",
        _PLACE,
    ),
    _misconception(
        "gaps_left",
        GapsLeft,
        "after del layers[2]",
        "a deletion leaves a gap in the numbers",
        "Delete the second of three layers and print the names. Which name will the next append take?",
        _LIST,
    ),
    _misconception(
        "gap_until_the_next_change",
        GapUntilTheNextChange,
        "after del layers[2]",
        "a deletion leaves a gap in the numbers, which a later change closes",
        "Delete the second of three layers, print the names, and save. Which keys does the file have, and which fit?",
        _LIST,
    ),
    _misconception(
        "children_walked",
        ChildrenWalked,
        "len() and loop of one layer, twice in the list",
        "iteration hands out children(), which gives each object once",
        "Put one layer into your list twice. How many does `children()` give, and how many does `_modules` hold?",
        "the section «The same layer twice» in this chapter",
    ),
    _misconception(
        "insert_overwrites",
        InsertOverwrites,
        "after insert(1, …)",
        "insert registers under a number that is taken",
        "Who was registered under the number that you insert at, and where is that layer afterwards?",
        _LIST,
    ),
    _misconception(
        "name_looked_up",
        NameLookedUp,
        "layers[-1] is the last layer",
        "the index is turned into a name, and -1 is nobody's name",
        "Which key does your code look for when you ask for `layers[-1]`?",
        _LIST,
    ),
    _misconception(
        "slice_is_list",
        SliceIsList,
        "a slice is a list of the same kind",
        "a slice is a plain list of layers",
        "Assign a slice of your list to a model's attribute. Are its layers registered there?",
        _LIST,
    ),
    _misconception(
        "sorted_as_text",
        SortedAsText,
        "output of a model that walks over it",
        "the names are sorted as text, so that 10 comes before 2",
        "Your list has eleven layers. Sort their names: which one follows `1`?",
        _LIST,
    ),
    _misconception(
        "length_asked",
        LengthAsked,
        "keys of one built from a generator",
        "the argument is asked for its length and its items, which a generator has not",
        "Which of the things you ask of the argument can a generator answer?",
        _CARD,
    ),
    _misconception(
        "nothing_refused",
        NothingRefused,
        "a function instead of a module",
        "the layers are written into _modules, past every check",
        "What happens when somebody hands in `torch.relu`, and when: as the list is built, or at the first batch?",
        "chapter 1, on the names and types that are refused",
    ),
    _misconception(
        "one_level_too_deep",
        OneLevelTooDeep,
        "keys of state_dict()",
        "the layers are kept in an nn.ModuleList inside",
        "Which word stands in front of the number in each of your keys, and would a file of nn.ModuleList have it?",
        _PLACE,
    ),
    _misconception(
        "extend_keeps_last",
        ExtendAppends,
        "after extend",
        "extend appends once, after its loop",
        "How many layers does your list gain when it is extended by two?",
        _CARD,
    ),
)
