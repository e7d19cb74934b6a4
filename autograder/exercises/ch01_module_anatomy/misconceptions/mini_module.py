"""Wrong modules. Each changes one decision of a class that is otherwise as nn.Module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception

REGISTRIES = ("_parameters", "_buffers", "_modules")


class _Mini:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self) -> None:
        for name in REGISTRIES:
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_not_saved", set())
        object.__setattr__(self, "training", True)

    def is_parameter(self, value: Any) -> bool:
        return isinstance(value, nn.Parameter)

    def is_child(self, value: Any) -> bool:
        return isinstance(value, _Mini)

    def is_buffer(self, value: Any) -> bool:
        return isinstance(value, nn.Buffer)

    def home(self, name: str, value: Any) -> str:
        """Return the registry that takes the value, or ``__dict__``. Raises TypeError for a value out of place."""
        expected = (
            ("_parameters", self.is_parameter, type(None)),
            ("_modules", self.is_child, type(None)),
            ("_buffers", self.is_buffer, (torch.Tensor, type(None))),
        )
        for registry, belongs, welcome in expected:
            if belongs(value):
                return registry
            if name in vars(self).get(registry, ()):
                if not isinstance(value, welcome):
                    raise TypeError(f"{name} cannot become a {type(value).__name__}")
                return registry
        return "__dict__"

    def __setattr__(self, name: str, value: Any) -> None:
        home = self.home(name, value)
        if home == "__dict__":
            object.__setattr__(self, name, value)
            return
        if home not in vars(self):
            raise AttributeError("super().__init__() comes first")
        if home == "_buffers" and isinstance(value, nn.Buffer):
            self.take_buffer(name, value)
            return
        self.leave_old_home(name, home)
        self.store(home, name, value)

    def leave_old_home(self, name: str, home: str) -> None:
        for registry in ("__dict__", *REGISTRIES):
            if registry != home:
                getattr(self, registry).pop(name, None)

    def store(self, home: str, name: str, value: Any) -> None:
        getattr(self, home)[name] = value

    def take_buffer(self, name: str, value: nn.Buffer) -> None:
        self.register_buffer(name, value, value.persistent)

    def __getattr__(self, name: str) -> Any:
        for registry in REGISTRIES:
            if name in vars(self).get(registry, ()):
                return vars(self)[registry][name]
        return self.nobody(name)

    def nobody(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def __delattr__(self, name: str) -> None:
        for registry in REGISTRIES:
            if name in getattr(self, registry):
                del getattr(self, registry)[name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        buffers = self._buffers
        if name not in buffers and hasattr(self, name):
            raise KeyError(name)
        buffers[name] = tensor
        (self._not_saved.discard if persistent else self._not_saved.add)(name)

    def named_modules(self, seen: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
        seen = set() if seen is None else seen
        if self in seen:
            return
        seen.add(self)
        yield path, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(seen, self.join(path, name))

    def join(self, path: str, name: str) -> str:
        return f"{path}.{name}" if path else name

    def named_members(self, registry: str) -> Iterator[tuple[str, Any]]:
        seen = set()
        for path, module in self.named_modules():
            for name, value in getattr(module, registry).items():
                if value is not None and id(value) not in seen:
                    self.remember(seen, value)
                    yield self.join(path, name), value

    def remember(self, seen: set, value: Any) -> None:
        seen.add(id(value))

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        return self.named_members("_parameters")

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        return self.named_members("_buffers")

    def parameters(self) -> Iterator[Any]:
        return (value for _, value in self.named_parameters())

    def saved(self) -> dict[str, Any]:
        return {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in self._not_saved}}

    def detached(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach()

    def state_dict(self, path: str = "") -> dict[str, Any]:
        state = {self.join(path, name): self.detached(v) for name, v in self.saved().items() if v is not None}
        for name, child in self._modules.items():
            if child is not None:
                state |= child.state_dict(self.join(path, name))
        return state

    def compare_keys(self, own: Any, state: Any) -> None:
        if set(own) != set(state):
            raise RuntimeError("the keys differ")

    def load_state_dict(self, state: Any) -> None:
        own = self.state_dict()
        self.compare_keys(own, state)
        for key, value in own.items():
            value.copy_(state[key])

    def train(self, mode: bool = True) -> Any:
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Any:
        return self.train(False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


class ThreeBranches(_Mini):
    def home(self, name: str, value: Any) -> str:
        if self.is_parameter(value):
            return "_parameters"
        return "_modules" if self.is_child(value) else "__dict__"


class NothingRefused(_Mini):
    def home(self, name: str, value: Any) -> str:
        try:
            return super().home(name, value)
        except TypeError:
            return "__dict__"


class TensorsBecomeBuffers(_Mini):
    def is_buffer(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)


class GradientMakesParameter(_Mini):
    def is_parameter(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.requires_grad


class OldHomeKept(_Mini):
    def leave_old_home(self, name: str, home: str) -> None:
        pass


class KeptInBothPlaces(_Mini):
    def store(self, home: str, name: str, value: Any) -> None:
        super().store(home, name, value)
        object.__setattr__(self, name, value)


class DelOfPlainOnly(_Mini):
    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)


class NobodyIsNone(_Mini):
    def nobody(self, name: str) -> Any:
        return None


class EndlessLookup(_Mini):
    def __getattr__(self, name: str) -> Any:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                return registry[name]
        return self.nobody(name)


class OneLevelDeep(_Mini):
    def named_members(self, registry: str) -> Iterator[tuple[str, Any]]:
        reached = [("", self), *((name, child) for name, child in self._modules.items() if child is not None)]
        seen = set()
        for path, module in reached:
            for name, value in getattr(module, registry).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield self.join(path, name), value


class TiedCountedTwice(_Mini):
    def remember(self, seen: set, value: Any) -> None:
        pass


class LastNameOnly(_Mini):
    def join(self, path: str, name: str) -> str:
        return name


class OwnFlagOnly(_Mini):
    def train(self, mode: bool = True) -> Any:
        self.training = mode
        return self


class ParametersSaved(_Mini):
    def saved(self) -> dict[str, Any]:
        return dict(self._parameters)


class EverythingSaved(_Mini):
    def saved(self) -> dict[str, Any]:
        return {**self._parameters, **self._buffers}


class NeverSavedAgain(_Mini):
    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        unsaved = set(self._not_saved)
        super().register_buffer(name, tensor, persistent)
        self._not_saved.update(unsaved)


class FlagOfBufferIgnored(_Mini):
    def take_buffer(self, name: str, value: nn.Buffer) -> None:
        self.register_buffer(name, value)


class BufferTakesPlainNames(_Mini):
    def take_buffer(self, name: str, value: nn.Buffer) -> None:
        self.leave_old_home(name, "_buffers")
        super().take_buffer(name, value)


class NoneMakesSlot(_Mini):
    def home(self, name: str, value: Any) -> str:
        return "_modules" if value is None and not hasattr(self, name) else super().home(name, value)


class StateCopied(_Mini):
    def detached(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach().clone()


class KeysNotCompared(_Mini):
    def compare_keys(self, own: Any, state: Any) -> None:
        pass


class LoadRebinds(_Mini):
    def load_state_dict(self, state: Any) -> None:
        if set(self.state_dict()) != set(state):
            raise RuntimeError("the keys differ")
        for path, module in self.named_modules():
            for name, value in module.saved().items():
                if value is not None:
                    new = state[self.join(path, name)].clone()
                    setattr(module, name, nn.Parameter(new) if name in module._parameters else new)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "three_branches",
        ThreeBranches,
        "the value in _buffers after that",
        "only parameters and modules are routed; every other assignment goes to __dict__",
        "Register a buffer, assign another tensor to its name, and print `vars(module)` beside `module._buffers`. How "
        "many tensors carry that name now, and which of them is saved?",
        "the section on what three branches forget in this chapter",
    ),
    _misconception(
        "nothing_refused",
        NothingRefused,
        "a tensor over a parameter",
        "a value out of place becomes a plain attribute instead of a TypeError",
        "After a tensor was assigned over a parameter, which of the two does `forward` read, and which one does the "
        "optimizer step?",
        "the branches of `Module.__setattr__` that raise TypeError",
    ),
    _misconception(
        "tensors_become_buffers",
        TensorsBecomeBuffers,
        "registries after assignment",
        "every tensor that is assigned is taken for a buffer",
        "Assign a plain tensor to a fresh name of an `nn.Module` and print `_buffers`. Who has to ask for a buffer?",
        "the condition of the last branch in `Module.__setattr__`",
    ),
    _misconception(
        "gradient_makes_parameter",
        GradientMakesParameter,
        "registries after assignment",
        "a tensor is taken for a parameter because it requires a gradient",
        "Which question does torch's first branch ask about the value: what it is, or what it requires?",
        "the first branch of `Module.__setattr__`",
    ),
    _misconception(
        "old_home_kept",
        OldHomeKept,
        "a parameter over a plain attribute",
        "a name that changes its home stays in the old one as well",
        "Assign 3 to a name, then a parameter to the same name, and read it. Which of its two homes does Python ask "
        "first?",
        "`remove_from` at the top of `Module.__setattr__`",
    ),
    _misconception(
        "kept_in_both_places",
        KeptInBothPlaces,
        "names kept in __dict__",
        "what is registered is stored in __dict__ too",
        "If a parameter also lies in `vars(module)`, when is `__getattr__` ever called for it? And what does the "
        "module still show after `del`?",
        "the section on the other half: reading in this chapter",
    ),
    _misconception(
        "del_of_plain_only",
        DelOfPlainOnly,
        "weight after del",
        "del works for plain attributes only",
        "Where does Python look for the name when you write `del module.weight`, and is it there?",
        "`inspect.getsource(nn.Module.__delattr__)`",
    ),
    _misconception(
        "nobody_is_none",
        NobodyIsNone,
        "a name that nobody has",
        "a name that nobody has reads as None",
        "What does `hasattr(module, 'wieght')` say, and at which line will a reader of your traceback start to search?",
        "the last statement of `Module.__getattr__`",
    ),
    _misconception(
        "endless_lookup",
        EndlessLookup,
        "a name that nobody has, before __init__",
        "__getattr__ reads its own registries by attribute",
        "Before `__init__` has run there is no `_parameters`. Which method does Python call to find it, and what does "
        "that method do first? Why does `copy.deepcopy` meet this too?",
        "the first two lines of `Module.__getattr__`",
    ),
    _misconception(
        "one_level_deep",
        OneLevelDeep,
        "paths of named_parameters()",
        "the walk visits children and not grandchildren",
        "How many dots can a path of yours have? Which call would make a grandchild's path?",
        "the section on one walk, every answer in this chapter",
    ),
    _misconception(
        "tied_counted_twice",
        TiedCountedTwice,
        "paths of named_parameters()",
        "a parameter with two names is listed twice",
        "One tensor under two names: how often may an optimizer step it, and how does `_named_members` know?",
        "the section on one walk, every answer in this chapter",
    ),
    _misconception(
        "last_name_only",
        LastNameOnly,
        "paths of named_modules()",
        "the path holds only the last name",
        "Two blocks both have a `weight`. How many keys are left for them in your `state_dict()`?",
        "the section on one walk, every answer in this chapter",
    ),
    _misconception(
        "own_flag_only",
        OwnFlagOnly,
        "flags after eval()",
        "train and eval set the flag of the module itself only",
        "Who reads `training`: the model at the top, or the layers below it?",
        "the section on the flag that travels in this chapter",
    ),
    _misconception(
        "parameters_saved",
        ParametersSaved,
        "keys of state_dict()",
        "state_dict leaves the buffers out",
        "Which of the tensors that your module registers would a fresh copy of it miss after loading?",
        "the section on a dict of paths in this chapter",
    ),
    _misconception(
        "everything_saved",
        EverythingSaved,
        "keys of state_dict()",
        "state_dict ignores `persistent` when it is False",
        "What did the caller of `register_buffer` ask for with its third argument, and where did you note it?",
        "the section on a dict of paths in this chapter",
    ),
    _misconception(
        "never_saved_again",
        NeverSavedAgain,
        "keys after the buffer was registered again, to be saved",
        "a buffer that was once registered with persistent=False is never saved",
        "A buffer is registered as not persistent, and later once more as usual. What does your note about it say "
        "then?",
        "the end of `Module.register_buffer`",
    ),
    _misconception(
        "flag_of_buffer_ignored",
        FlagOfBufferIgnored,
        "keys after an nn.Buffer that is not to be saved",
        "the flag persistent of an assigned nn.Buffer is not read",
        "An `nn.Buffer` knows whether it wants to be saved: look at its attribute `persistent`. Who passes that on "
        "when you assign it?",
        "the buffer branch of `Module.__setattr__`",
    ),
    _misconception(
        "buffer_takes_plain_names",
        BufferTakesPlainNames,
        "an nn.Buffer over a plain attribute",
        "an nn.Buffer takes the name of a plain attribute away",
        "`__setattr__` clears the other homes for a parameter and for a module. Does it do so for a buffer? What does "
        "`register_buffer` say then?",
        "the table of assignments in this chapter",
    ),
    _misconception(
        "none_makes_slot",
        NoneMakesSlot,
        "None under a fresh name",
        "None under a fresh name becomes an empty slot",
        "A slot keeps a place for something. Who has said what the place is for, when a fresh name is set to None?",
        "the table of assignments in this chapter",
    ),
    _misconception(
        "state_copied",
        StateCopied,
        "state_dict() after a change in place",
        "state_dict gives copies",
        "Change a parameter in place and look into a dict that you took before. And if `load_state_dict` writes into "
        "what your `state_dict()` gives: whose values change?",
        "the section on a dict of paths in this chapter",
    ),
    _misconception(
        "keys_not_compared",
        KeysNotCompared,
        "loading with a key too many",
        "loading does not compare the keys first",
        "A file has one key more than the model. What does torch say, and what would you like to hear when you load a "
        "file into the wrong model?",
        "the section on a dict of paths in this chapter",
    ),
    _misconception(
        "load_rebinds",
        LoadRebinds,
        "the parameters are the same objects after it",
        "loading puts new tensors in place of the old ones",
        "An optimizer was built before the load. Which tensors does it hold, and which ones does your module hold now?",
        "the section on a dict of paths in this chapter",
    ),
)
