"""Right checkpoints, each with its own layout of the file."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import torch


def save_flat(path, model, optimizer, scheduler, epoch):
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "epoch": epoch,
            "rng": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
            "random": random.getstate(),
        },
        path,
    )


def load_flat(path, model, optimizer, scheduler):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"])
    torch.cuda.set_rng_state_all(state["cuda"])
    random.setstate(state["random"])
    return state["epoch"] + 1


def save_list(path, model, optimizer, scheduler, epoch):
    version, numbers, gauss = random.getstate()
    generators = [torch.get_rng_state(), torch.cuda.get_rng_state_all(), json.dumps([version, list(numbers), gauss])]
    torch.save([epoch + 1, [thing.state_dict() for thing in (model, optimizer, scheduler)], generators], path)


def load_list(path, model, optimizer, scheduler):
    start, states, (cpu, cuda, python) = torch.load(path, map_location="cpu")
    for thing, state in zip((model, optimizer, scheduler), states, strict=True):
        thing.load_state_dict(state)
    torch.random.set_rng_state(cpu)
    torch.cuda.set_rng_state_all(cuda)
    version, numbers, gauss = json.loads(python)
    random.setstate((version, tuple(numbers), gauss))
    return start


def save_through_memory(path, model, optimizer, scheduler, epoch):
    memory = io.BytesIO()
    objects = {"net": model, "opt": optimizer, "sched": scheduler}
    contents = {name: thing.state_dict() for name, thing in objects.items()}
    contents["extra"] = {"finished": torch.tensor(epoch), "streams": (torch.random.get_rng_state(), random.getstate())}
    contents["devices"] = dict(enumerate(torch.cuda.get_rng_state_all()))
    torch.save(contents, memory)
    Path(path).write_bytes(memory.getvalue())


def load_from_bytes(path, model, optimizer, scheduler):
    contents = torch.load(io.BytesIO(Path(path).read_bytes()), map_location="cpu")
    scheduler.load_state_dict(contents["sched"])
    optimizer.load_state_dict(contents["opt"])
    model.load_state_dict(contents["net"], strict=True)
    stream, python = contents["extra"]["streams"]
    random.setstate(python)
    torch.random.set_rng_state(stream)
    for index, state in contents["devices"].items():
        torch.cuda.set_rng_state(state, index)
    return int(contents["extra"]["finished"]) + 1


right_answers = [(save_flat, load_flat), (save_list, load_list), (save_through_memory, load_from_bytes)]
