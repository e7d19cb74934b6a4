"""Right detectors: on a copy, on the model itself with everything put back, and with tensor hooks."""

from __future__ import annotations

import copy
from functools import partial

import torch


def bad(*values):
    return any(torch.is_tensor(value) and not torch.isfinite(value).all() for value in values)


def on_a_copy(model, x, loss_of):
    """Hooks on a twin; two lists of suspects."""
    if bad(x):
        return ("input", "")
    model, x = copy.deepcopy(model), x.clone().requires_grad_()
    suspects = {"forward": [], "backward": []}
    clean_arrival = set()

    def watch(path, module):
        def after(module, args, output):
            if bad(output) and not bad(*args):
                suspects["forward"].append(path)

        def back(module, grad_input, grad_output):
            if bad(*grad_output):
                return
            clean_arrival.add(path)
            if bad(*grad_input):
                suspects["backward"].append(path)

        module.register_forward_hook(after)
        module.register_full_backward_hook(back)

    for path, module in model.named_modules():
        watch(path, module)
    loss = loss_of(model(x))
    if suspects["forward"]:
        return ("forward", suspects["forward"][0])
    loss.backward()
    for path, module in model.named_modules():
        if path in clean_arrival and bad(*(p.grad for p in module.parameters(recurse=False))):
            suspects["backward"].append(path)
    if suspects["backward"]:
        return ("backward", suspects["backward"][0])
    if bad(loss, x.grad) or len(clean_arrival) < len(list(model.named_modules())):
        return ("loss", "")
    return None


def with_everything_put_back(model, x, loss_of):
    """Asks the model itself; torch.autograd.grad leaves the gradients alone, and the state is loaded back."""
    if not torch.isfinite(x).all():
        return "input", ""
    state = copy.deepcopy(model.state_dict())
    leaf = x.detach().clone().requires_grad_(True)
    handles, accused, received = [], [], {}

    def forward_hook(path):
        def hook(module, args, output):
            if not bad(*args) and bad(output):
                accused.append(("forward", path))

        return hook

    def backward_hook(path):
        def hook(module, grad_input, grad_output):
            received[path] = not bad(*grad_output)
            if received[path] and bad(*grad_input):
                accused.append(("backward", path))

        return hook

    try:
        for path, module in model.named_modules():
            handles.append(module.register_forward_hook(forward_hook(path)))
            handles.append(module.register_full_backward_hook(backward_hook(path)))
        loss = loss_of(model(leaf))
        if accused:
            return accused[0]
        names, weights = zip(*model.named_parameters(), strict=True)
        gradient, *gradients = torch.autograd.grad(loss, [leaf, *weights], allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
        model.load_state_dict(state)
    for name, value in zip(names, gradients, strict=True):
        owner = name.rpartition(".")[0]
        if bad(value) and received.get(owner):
            accused.append(("backward", owner))
    if accused:
        return accused[0]
    return ("loss", "") if bad(loss, gradient) or not all(received.values()) else None


def with_tensor_hooks(model, x, loss_of):
    """Remembers inputs and outputs, keeps their gradients, and judges after the step, innermost first."""
    if bad(x):
        return ("input", "")
    twin, calls = copy.deepcopy(model), []
    x = x.detach().clone().requires_grad_()

    def remember(path):
        def hook(module, args, output):
            calls.append((path, module, args[0], output))

        return hook

    for path, module in twin.named_modules():
        module.register_forward_hook(remember(path))
    output = twin(x)
    for path, _, came, went in calls:
        if bad(went) and not bad(came):
            return ("forward", path)
    gradients = {}
    for value in {id(value): value for _, _, came, went in calls for value in (came, went)}.values():
        value.register_hook(partial(gradients.__setitem__, id(value)))
    loss = loss_of(output)
    loss.backward()
    for path, module, came, went in calls:
        own = [parameter.grad for parameter in module.parameters(recurse=False)]
        if not bad(gradients.get(id(went))) and bad(gradients.get(id(came)), *own):
            return ("backward", path)
    return ("loss", "") if bad(loss, *gradients.values()) else None


right_answers = [(on_a_copy,), (with_everything_put_back,), (with_tensor_hooks,)]
