"""Right multi-task models: filled at once, filled by its own add_task, converted afterwards."""

from __future__ import annotations

import torch
from torch import nn


class FilledAtOnce(nn.Module):
    """A comprehension in the constructor."""

    def __init__(self, in_features, hidden, tasks):
        super().__init__()
        self.heads = nn.ModuleDict({task: nn.Linear(hidden, size) for task, size in tasks.items()})
        self.backbone = nn.Linear(in_features, hidden)

    def forward(self, x, task):
        return self.heads[task](self.backbone(x).relu())

    def add_task(self, task, size):
        if task in self.heads.keys():
            raise KeyError(task)
        self.heads.update({task: nn.Linear(self.backbone.out_features, size).to(self.backbone.weight)})


class FilledByAddTask(nn.Module):
    """The constructor uses the method that everyone else uses."""

    def __init__(self, in_features, hidden, tasks):
        super().__init__()
        self.backbone = nn.Linear(in_features, hidden)
        self.heads = nn.ModuleDict()
        for task in tasks:
            self.add_task(task, tasks[task])

    def forward(self, x, task):
        if task not in self.heads:
            raise KeyError(f"no head for {task!r}; there are {', '.join(self.heads)}")
        features = torch.clamp(self.backbone(x), min=0)
        return self.heads[task](features)

    def add_task(self, task, size):
        if task in self.heads:
            raise KeyError(f"{task!r} has a head")
        weight = self.backbone.weight
        self.heads.add_module(task, nn.Linear(weight.size(0), size, device=weight.device, dtype=weight.dtype))


class Converted(nn.Module):
    """Converts the new head after it was made."""

    def __init__(self, in_features, hidden, tasks):
        super().__init__()
        self.hidden = hidden
        self.backbone = nn.Linear(in_features, hidden)
        self.heads = nn.ModuleDict([(task, nn.Linear(hidden, size)) for task, size in tasks.items()])

    def features(self, x):
        return nn.functional.relu(self.backbone(x))

    def forward(self, x, task):
        head = self.heads[task]
        return head(self.features(x))

    def add_task(self, task, size):
        if hasattr(self.heads, task):
            raise KeyError(task)
        like = next(self.backbone.parameters())
        head = nn.Linear(self.hidden, size)
        head.to(device=like.device, dtype=like.dtype)
        head.train(self.training)
        self.heads[task] = head


right_answers = [(FilledAtOnce,), (FilledByAddTask,), (Converted,)]
