"""Right modules, each written in another way."""

from __future__ import annotations

import itertools
from collections import ChainMap, OrderedDict

import torch
from torch import nn


class WithIfs:
    """One branch after the other, as torch has it; the walks recurse."""

    def __init__(self):
        vars(self).update(_parameters={}, _buffers={}, _modules={}, temporary=set(), training=True)

    def __setattr__(self, name, value):
        own = vars(self)
        ready = "_parameters" in own
        if isinstance(value, nn.Parameter):
            if not ready:
                raise AttributeError("parameter before __init__")
            self.forget(name)
            self._parameters[name] = value
        elif ready and name in self._parameters:
            if value is not None:
                raise TypeError("a parameter's place takes a parameter or None")
            self._parameters[name] = None
        elif isinstance(value, WithIfs):
            if not ready:
                raise AttributeError("module before __init__")
            if name not in self._modules:
                self.forget(name)
            self._modules[name] = value
        elif ready and name in self._modules:
            if value is not None:
                raise TypeError("a child's place takes a module or None")
            self._modules[name] = None
        elif isinstance(value, nn.Buffer):
            self.register_buffer(name, value, value.persistent)
        elif ready and name in self._buffers:
            if value is not None and not isinstance(value, torch.Tensor):
                raise TypeError("a buffer's place takes a tensor or None")
            self._buffers[name] = value
        else:
            own[name] = value

    def forget(self, name):
        for home in (vars(self), self._parameters, self._buffers, self._modules):
            home.pop(name, None)
        self.temporary.discard(name)

    def __getattr__(self, name):
        own = self.__dict__
        if "_modules" in own:
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
        raise AttributeError(name)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self.temporary.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def register_buffer(self, name, tensor, persistent=True):
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{name} is taken")
        self._buffers[name] = tensor
        if persistent:
            self.temporary.discard(name)
        else:
            self.temporary.add(name)

    def named_modules(self, seen=None, path=""):
        seen = seen if seen is not None else []
        if any(self is other for other in seen):
            return
        seen.append(self)
        yield path, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(seen, path + "." + name if path else name)

    def named_parameters(self):
        seen = set()
        for path, module in self.named_modules():
            for name, parameter in module._parameters.items():
                if parameter is not None and parameter not in seen:
                    seen.add(parameter)
                    yield (path + "." + name if path else name), parameter

    def named_buffers(self):
        seen = set()
        for path, module in self.named_modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer not in seen:
                    seen.add(buffer)
                    yield (path + "." + name if path else name), buffer

    def parameters(self):
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self, prefix=""):
        state = OrderedDict()
        for name, parameter in self._parameters.items():
            if parameter is not None:
                state[prefix + name] = parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self.temporary:
                state[prefix + name] = buffer.detach()
        for name, child in self._modules.items():
            if child is not None:
                state.update(child.state_dict(prefix + name + "."))
        return state

    def load_state_dict(self, state):
        mine = self.state_dict()
        missing, unexpected = mine.keys() - state.keys(), state.keys() - mine.keys()
        if missing or unexpected:
            raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
        for key in mine:
            mine[key].copy_(state[key])

    def train(self, mode=True):
        self.training = mode
        for child in self._modules.values():
            if child is not None:
                child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class WithATable:
    """One table says which types each registry takes; lookups go through a ChainMap; the walk keeps a stack."""

    def __init__(self):
        for name in ("_parameters", "_modules", "_buffers"):
            object.__setattr__(self, name, {})
        object.__setattr__(self, "_not_saved", [])
        object.__setattr__(self, "training", True)

    def _table(self):
        yield "_parameters", nn.Parameter, ()
        yield "_modules", WithATable, ()
        yield "_buffers", nn.Buffer, torch.Tensor

    def __setattr__(self, name, value):
        for registry, kind, also in self._table():
            if isinstance(value, kind):
                return self._store(registry, name, value)
            if name in self.__dict__.get(registry, {}):
                if value is None or isinstance(value, also):
                    self.__dict__[registry][name] = value
                    return None
                raise TypeError(f"{type(value).__name__} in {registry}")
        return object.__setattr__(self, name, value)

    def _store(self, registry, name, value):
        if registry not in self.__dict__:
            raise AttributeError("call super().__init__() first")
        if registry == "_buffers":
            self.register_buffer(name, value, persistent=value.persistent)
            return
        for other in (self.__dict__, self._parameters, self._modules, self._buffers):
            if other is not self.__dict__[registry] and name in other:
                del other[name]
        self.__dict__[registry][name] = value

    def __getattr__(self, name):
        homes = [self.__dict__[key] for key in ("_parameters", "_buffers", "_modules") if key in self.__dict__]
        try:
            return ChainMap(*homes)[name]
        except KeyError:
            raise AttributeError(f"no attribute {name}") from None

    def __delattr__(self, name):
        homes = (self._parameters, self._buffers, self._modules, self.__dict__)
        home = next((home for home in homes if name in home), None)
        if home is None:
            raise AttributeError(name)
        home.pop(name)

    def register_buffer(self, name, tensor, persistent=True):
        if "_buffers" not in self.__dict__:
            raise AttributeError("call super().__init__() first")
        if name in {**self.__dict__, **self._parameters, **self._modules}:
            raise KeyError(name)
        self._buffers[name] = tensor
        while name in self._not_saved:
            self._not_saved.remove(name)
        if not persistent:
            self._not_saved.append(name)

    def named_modules(self):
        found, waiting = {}, [("", self)]
        while waiting:
            path, module = waiting.pop(0)
            if id(module) in found:
                continue
            found[id(module)] = (path, module)
            below = [(f"{path}.{name}".lstrip("."), child) for name, child in module._modules.items() if child]
            waiting = below + waiting
        return list(found.values())

    def _named(self, registry):
        seen = {}
        for path, module in self.named_modules():
            for name, value in module.__dict__[registry].items():
                if value is not None:
                    seen.setdefault(id(value), (f"{path}.{name}".lstrip("."), value))
        return list(seen.values())

    def named_parameters(self):
        return self._named("_parameters")

    def named_buffers(self):
        return self._named("_buffers")

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]

    def state_dict(self):
        state = {name: p.data for name, p in self._parameters.items() if p is not None}
        state.update((n, b.data) for n, b in self._buffers.items() if b is not None and n not in self._not_saved)
        for name, child in self._modules.items():
            if child is not None:
                state.update((f"{name}.{key}", value) for key, value in child.state_dict().items())
        return state

    @torch.no_grad()
    def load_state_dict(self, state):
        own = self.state_dict()
        if own.keys() != state.keys():
            raise RuntimeError(sorted(own.keys() ^ state.keys()))
        for key, value in state.items():
            own[key][...] = value

    def train(self, mode=True):
        for _, module in self.named_modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self):
        self.train(mode=False)
        return self

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class _Slot:
    """What WithHelpers keeps of a name."""


class WithHelpers:
    """Clears every other home before each store; one generic walk with a flag for repeats serves everything."""

    def __init__(self):
        self.__dict__["_parameters"] = OrderedDict()
        self.__dict__["_buffers"] = OrderedDict()
        self.__dict__["_modules"] = OrderedDict()
        self.__dict__["_persistent"] = {}
        self.training = True

    def __setattr__(self, name, value):
        kind = self._kind(name, value)
        if kind is None:
            kind = self._kept_by(name, value)
        if kind is None:
            return super().__setattr__(name, value)
        if kind not in self.__dict__:
            raise AttributeError(f"{name} is assigned before MiniModule.__init__()")
        if kind == "_buffers":
            kept = self._persistent.get(name, True)
            self.register_buffer(name, value, getattr(value, "persistent", kept))
        else:
            kept = self.__dict__[kind]
            if name not in kept:
                for home in (self.__dict__, self._parameters, self._buffers, self._modules):
                    home.pop(name, None)
            kept[name] = value
        return None

    def _kind(self, name, value):
        if isinstance(value, nn.Parameter):
            return "_parameters"
        # A child is refused where a parameter is: that is for _kept_by to say.
        if isinstance(value, WithHelpers) and name not in self.__dict__.get("_parameters", ()):
            return "_modules"
        return None

    def _kept_by(self, name, value):
        welcome = {"_parameters": _Slot, "_modules": _Slot, "_buffers": torch.Tensor}
        for kind, types in welcome.items():
            if name in self.__dict__.get(kind, ()):
                if value is None or isinstance(value, types):
                    return kind
                raise TypeError(f"{name} belongs to {kind}")
        return "_buffers" if isinstance(value, nn.Buffer) else None

    def __getattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            kept = self.__dict__.get(kind)
            if kept is not None and name in kept:
                return kept[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            if self.__dict__[kind].pop(name, self) is not self:
                return None
        return super().__delattr__(name)

    def register_buffer(self, name, tensor, persistent=True):
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute {name!r} already exists")
        self._buffers[name] = tensor
        self._persistent[name] = persistent

    def _walk(self, path=()):
        yield path, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child._walk((*path, name))

    def _unique(self, pairs):
        met = set()
        for path, thing in pairs:
            if thing is not None and id(thing) not in met:
                met.add(id(thing))
                yield ".".join(path), thing

    def _members(self, kind):
        return ((((*path, n), v)) for path, module in self._walk() for n, v in module.__dict__[kind].items())

    def named_modules(self):
        return self._unique(self._walk())

    def named_parameters(self):
        return self._unique(self._members("_parameters"))

    def named_buffers(self):
        return self._unique(self._members("_buffers"))

    def parameters(self):
        return map(lambda pair: pair[1], self.named_parameters())

    def state_dict(self):
        state = {}
        for path, module in self._walk():
            kept = ((n, b) for n, b in module._buffers.items() if module._persistent.get(n, True))
            for name, value in itertools.chain(module._parameters.items(), kept):
                if value is not None:
                    state[".".join((*path, name))] = value.detach()
        return state

    def load_state_dict(self, state):
        own = self.state_dict()
        for key in {*own, *state}:
            if key not in own or key not in state:
                raise RuntimeError(f"{key} does not match")
        with torch.no_grad():
            for key, value in own.items():
                value.data.copy_(state[key])

    def train(self, mode=True):
        for _, module in self._walk():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


right_answers = [(WithIfs,), (WithATable,), (WithHelpers,)]
