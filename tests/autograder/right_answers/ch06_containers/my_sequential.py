"""Right sequentials: one that registers with add_module, one with setattr, one that folds over its children."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict

from torch import nn


class WithAddModule(nn.Module):
    """Registers by the method and reads ``_modules``."""

    def __init__(self, *layers):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            named = layers[0].items()
        else:
            named = ((str(number), layer) for number, layer in enumerate(layers))
        for name, layer in named:
            self.add_module(name, layer)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return WithAddModule(OrderedDict(list(self._modules.items())[index]))
        return list(self._modules.values())[index]

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class WithSetattr(nn.Module):
    """Registers by assignment, after a check of its own, and finds the layers by their names."""

    def __init__(self, *layers):
        super().__init__()
        named = layers[0] if len(layers) == 1 and isinstance(layers[0], dict) else None
        self.names = list(named) if named is not None else [str(number) for number in range(len(layers))]
        for name, layer in zip(self.names, named.values() if named is not None else layers, strict=True):
            if not isinstance(layer, nn.Module):
                raise TypeError(f"{name} is no module")
            setattr(self, name, layer)

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        for name in self.names:
            yield getattr(self, name)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict((name, getattr(self, name)) for name in self.names[index]))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return getattr(self, self.names[index])

    def forward(self, input):
        output = input
        for number in range(len(self)):
            output = self[number](output)
        return output


class WithFold(nn.Module):
    """Folds the input through the children; duplicates are kept because the dict is read, not children()."""

    def __init__(self, *layers):
        super().__init__()
        if layers and isinstance(layers[0], OrderedDict):
            pairs = list(layers[0].items())
        else:
            pairs = list(zip(map(str, itertools.count()), layers, strict=False))
        for pair in pairs:
            self.register_module(*pair)

    def __len__(self):
        return len(list(iter(self)))

    def __iter__(self):
        return (child for _, child in self.named_children_with_duplicates())

    def named_children_with_duplicates(self):
        return list(self._modules.items())

    def __getitem__(self, index):
        found = self.named_children_with_duplicates()[index]
        return self.__class__(OrderedDict(found)) if isinstance(index, slice) else found[1]

    def forward(self, x):
        return functools.reduce(lambda value, layer: layer(value), self, x)


right_answers = [(WithAddModule,), (WithSetattr,), (WithFold,)]
