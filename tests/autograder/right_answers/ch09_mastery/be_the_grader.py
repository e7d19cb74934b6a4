"""Right probes, each with its own way through the life of a layer."""

from __future__ import annotations

import copy

import torch


def straight_through(make):
    layer = make(3, eps=0.1, momentum=0.25)
    yield "keys", set_of(layer.state_dict())
    yield "trained", set_of(dict(layer.named_parameters()))
    layer.weight.data = torch.tensor([0.5, 2.0, -3.0])
    layer.bias.data = torch.tensor([1.0, -1.0, 0.0])
    torch.manual_seed(7)
    for step in range(2):
        x = (torch.randn(5, 3) * 2 + step).requires_grad_()
        kept = x.detach().clone()
        y = layer(x)
        (y**3).sum().backward()
        yield f"output {step}", y
        yield f"gradient {step}", x.grad, 1e-2
        yield f"untouched {step}", torch.equal(kept, x.detach())
        yield f"state {step}", dict(layer.named_buffers())["running_var"]
        yield f"count {step}", int(layer.num_batches_tracked)
    layer.eval()
    rows = torch.randn(2, 3)
    kept = rows.clone()
    yield "eval", layer(rows)
    yield "eval leaves its input", bool((kept == rows).all())
    yield "eval leaves the mean", layer.running_mean
    yield "eval leaves the count", layer.num_batches_tracked.item()
    layer.train()
    yield "back in training", layer(torch.randn(4, 3))
    cumulative = make(3, momentum=None)
    for _ in range(3):
        cumulative(torch.randn(4, 3))
    yield "cumulative mean", cumulative.running_mean
    yield "dtype", layer.double()(torch.randn(4, 3).double()).dtype


def set_of(names):
    return dict.fromkeys(sorted(names), True)


def as_one_dictionary(make):
    """Everything is collected first and yielded at the end, under its name."""
    seen = {}
    x = torch.arange(8.0).view(4, 2).sin() * 3
    for momentum in (0.3, None):
        layer = make(2, eps=1.0, momentum=momentum)
        torch.nn.init.constant_(layer.weight, 3.0)
        torch.nn.init.constant_(layer.bias, -2.0)
        for turn, mode in enumerate((True, True, False, True)):
            layer.train(mode)
            given = (x + turn).clone().requires_grad_(True)
            out = layer(given)
            out.exp().sum().backward()
            given.requires_grad_(False)
            seen[momentum, turn] = [out, given, layer.running_mean.clone(), layer.running_var.clone()]
            seen[momentum, turn, "count"] = layer.num_batches_tracked.item()
            seen[momentum, turn, "grad"] = given.grad.clone()
        seen[momentum, "names"] = sorted(layer.state_dict()) + sorted(n for n, _ in layer.named_parameters())
        seen[momentum, "wide"] = copy.deepcopy(layer).double().eval()(x.double()).dtype
    for name, value in seen.items():
        if "grad" in name:
            yield str(name), value, 1e-3
        else:
            yield str(name), value


class _Watcher:
    def __init__(self, make):
        self.make, self.rows = make, torch.tensor([[0.0, 1.0, 4.0], [2.0, 0.0, -4.0], [1.0, 5.0, 0.5]])

    def state(self, layer):
        return {name: value.clone() for name, value in sorted(layer.state_dict().items())}

    def __iter__(self):
        layer = self.make(3, eps=0.2, momentum=0.9)
        yield "fresh", self.state(layer)
        yield "how many parameters", len(list(layer.parameters()))
        layer.load_state_dict({**layer.state_dict(), "weight": torch.tensor([5.0, 4.0, 3.0])})
        rows = self.rows.clone().requires_grad_(True)
        (layer(rows) * torch.arange(9.0).view(3, 3) ** 2).sum().backward()
        yield "gradients", [rows.grad, layer.weight.grad, layer.bias.grad], 1e-2
        yield "trained", self.state(layer)
        before = self.rows.clone()
        yield "frozen output", layer.eval()(before)
        yield "what was handed in", before
        yield "same state", self.state(layer)
        yield "trains on", layer.train()(self.rows * 2)
        yield "and remembers", self.state(layer)
        twin = self.make(3, momentum=None).double()
        yield "double", twin(self.rows.double())
        twin(self.rows.double() + 3)
        yield "mean of two", twin.running_mean, 1e-6


def with_a_class(make):
    yield from _Watcher(make)


def line_by_line_of_the_card(make):
    """Asks for every sentence of chapter 3's card, the refusal of a single row included."""
    torch.manual_seed(0)
    layer = make(3, eps=0.01, momentum=0.3)
    yield "start", sorted((name, str(value.dtype), value.sum().item()) for name, value in layer.state_dict().items())
    yield "trained", sorted(name for name, _ in layer.named_parameters())
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, -1.0, 0.5]))
        layer.bias.copy_(torch.tensor([0.3, -0.7, 1.1]))
    x = (torch.randn(5, 3) * 3 + 2).requires_grad_()
    given, held = x.detach().clone(), layer.running_mean
    y = layer(x)
    yield "output", y
    (y * torch.randn(5, 3)).sum().backward()
    yield "gradients", [x.grad, layer.weight.grad, layer.bias.grad]
    yield "in place", [held, layer.running_var, layer.num_batches_tracked]
    try:
        layer(x[:1])
        yield "one row in training", "accepted"
    except ValueError:
        yield "one row in training", "refused"
    layer.eval()
    for rows in (given, given[:1]):
        yield f"eval of {len(rows)}", layer(rows)
    yield "input", torch.equal(given, x.detach())
    yield "after eval", [layer.running_mean, layer.running_var, layer.num_batches_tracked]
    yield "training again", layer.train()(given + 1)
    other = make(3, eps=0.01, momentum=0.3)
    yield "loads", str(other.load_state_dict(layer.state_dict()))
    yield "loaded", other.eval()(given)
    copy.deepcopy(layer).train()(given)
    yield "a copy trains alone", layer.running_mean
    average = make(3, momentum=None)
    for step in range(3):
        average(given + step)
    yield "average", [average.running_mean, average.running_var]
    yield "wide", layer.double().eval()(given.double()), 1e-4


right_answers = [(straight_through,), (as_one_dictionary,), (with_a_class,), (line_by_line_of_the_card,)]
