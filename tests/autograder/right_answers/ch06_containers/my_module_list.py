"""Right module lists: one that rebuilds, one that moves names one by one, one that keeps a list and syncs it."""

from __future__ import annotations

import operator

from torch import nn


class WithRebuilding(nn.Module):
    """Lets a Python list do the work and registers the result anew."""

    def __init__(self, modules=()):
        super().__init__()
        self._replace_all(modules)

    def _replace_all(self, modules):
        modules = list(modules)
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        found = list(self)[index]
        return WithRebuilding(found) if isinstance(index, slice) else found

    def __setitem__(self, index, module):
        self._change("__setitem__", index, module)

    def __delitem__(self, index):
        self._change("__delitem__", index)

    def append(self, module):
        self._change("append", module)

    def extend(self, modules):
        self._change("extend", modules)

    def insert(self, index, module):
        self._change("insert", index, module)

    def _change(self, method, *arguments):
        modules = list(self)
        getattr(modules, method)(*arguments)
        self._replace_all(modules)


class WithNames(nn.Module):
    """Works on the names, as torch does."""

    def __init__(self, modules=None):
        super().__init__()
        for module in modules if modules is not None else []:
            self.append(module)

    def _name(self, index):
        index = operator.index(index)
        if index < -len(self) or index >= len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        for number in range(len(self)):
            yield self._modules[str(number)]

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.__class__(self[number] for number in range(*index.indices(len(self))))
        return getattr(self, self._name(index))

    def __setitem__(self, index, module):
        setattr(self, self._name(index), module)

    def __delitem__(self, index):
        start, count = int(self._name(index)), len(self)
        for number in range(start, count - 1):
            self._modules[str(number)] = self._modules[str(number + 1)]
        del self._modules[str(count - 1)]

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self

    def insert(self, index, module):
        self.append(module)
        for number in range(len(self) - 1, index, -1):
            self._modules[str(number)] = self._modules[str(number - 1)]
        self._modules[str(index)] = module


class WithSync(nn.Module):
    """Keeps a list, and registers after every change."""

    def __init__(self, modules=()):
        super().__init__()
        self.__dict__["order"] = [*modules]
        self.sync()

    def sync(self):
        for name in list(self._modules):
            delattr(self, name)
        for number, module in enumerate(self.order):
            self.register_module(f"{number}", module)

    def __len__(self):
        return len(self.order)

    def __iter__(self):
        return iter(self.order)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return WithSync(self.order[index])
        return self.order[index]

    def __setitem__(self, index, module):
        self.order[index] = module
        self.sync()

    def __delitem__(self, index):
        self.order.pop(index)
        self.sync()

    def append(self, module):
        self.extend([module])

    def extend(self, modules):
        self.order += list(modules)
        self.sync()

    def insert(self, index, module):
        self.order[index:index] = [module]
        self.sync()


right_answers = [(WithRebuilding,), (WithNames,), (WithSync,)]
