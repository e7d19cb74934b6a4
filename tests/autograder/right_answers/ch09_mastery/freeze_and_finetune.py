"""Right ways to freeze and go on, each with its own optimizer."""

from __future__ import annotations

import torch


def changing_the_old_optimizer(model, optimizer, frozen, rates):
    """The optimizer's memory is keyed by parameter, so that editing its groups loses nothing."""
    still = set()
    for path in frozen:
        part = model.get_submodule(path).requires_grad_(False).eval()
        part.zero_grad(set_to_none=True)
        still |= set(part.parameters())
    template = dict(optimizer.param_groups[0])
    optimizer.param_groups.clear()
    placed = set(still)
    for path, rate in [*rates.items(), ("", template["lr"])]:
        params = [p for p in model.get_submodule(path).parameters() if p not in placed]
        if params:
            optimizer.add_param_group({**template, "params": params, "lr": rate})
            placed |= set(params)
    for parameter in still:
        optimizer.state.pop(parameter, None)
    return optimizer


def with_a_state_dict(model, optimizer, frozen, rates):
    names = {id(p): name for name, p in model.named_parameters()}
    order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
    saved = optimizer.state_dict()
    for path in frozen:
        for module in model.get_submodule(path).modules():
            module.training = False
    model.zero_grad(set_to_none=True)
    groups, taken = [], []
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        above = {".".join(parts[: i + 1]) for i in range(len(parts))}
        if above & set(frozen):
            parameter.requires_grad = False
            continue
        found = [rates[path] for path in rates if path in above]
        settings = {k: v for k, v in saved["param_groups"][0].items() if k != "params"}
        settings["lr"] = found[0] if found else settings["lr"]
        groups.append({**settings, "params": [parameter]})
        taken.append(name)
    new = type(optimizer)(groups)
    state = {i: saved["state"][order.index(name)] for i, name in enumerate(taken)}
    new.load_state_dict({"state": state, "param_groups": new.state_dict()["param_groups"]})
    return new


def with_defaults(model, optimizer, frozen, rates):
    base = optimizer.param_groups[0]["lr"]
    frozen_parameters = set()
    for path in frozen:
        module = model.get_submodule(path)
        module.train(False)
        frozen_parameters.update(module.parameters())
    for parameter in frozen_parameters:
        parameter.requires_grad, parameter.grad = False, None
    by_rate = {}
    for name, parameter in model.named_parameters():
        if parameter in frozen_parameters:
            continue
        lr = base
        for path, rate in rates.items():
            if (name + ".").startswith(path + "."):
                lr = rate
        by_rate.setdefault(lr, []).append(parameter)
    kwargs = {k: v for k, v in optimizer.defaults.items() if k != "lr"}
    make = torch.optim.Adam if isinstance(optimizer, torch.optim.Adam) else torch.optim.SGD
    new = make([{"params": ps, "lr": lr} for lr, ps in by_rate.items()], lr=base, **kwargs)
    for parameter, memory in optimizer.state.items():
        if parameter not in frozen_parameters:
            new.state[parameter] = {k: v.clone() if torch.is_tensor(v) else v for k, v in memory.items()}
    return new


right_answers = [(changing_the_old_optimizer,), (with_a_state_dict,), (with_defaults,)]
