"""A class as it might be: answers put together from the choices that people make, right and wrong ones.

Every student decides each line alone, so that two answers are alike as far as chance makes them; on top of that some
hand in what a report has to find. The same number always gives the same class.
"""

from __future__ import annotations

import random
import re

from autograder.grading.ticket import EMISSION_TYPE
from tests.grading.answers import RIGHT_CHECKPOINT, RIGHT_DROPOUT, SUBMISSIONS

Answers = dict[str, str]

CHANNELS = ("num_features", "features", "channels", "num_channels", "C", "n_features", "width")
# What each student may call things; the template's and the textbooks' names are the likeliest.
NAMES = {
    "axes": ("axes", "dims", "reduce", "dim", "over"),
    "mean": ("mean", "mu", "m", "batch_mean", "avg"),
    "var": ("var", "v", "batch_var", "sigma2", "variance"),
    "shape": ("shape", "view", "s", "broadcast"),
    "count": ("count", "n", "N", "num", "size"),
    "factor": ("factor", "m_", "alpha", "momentum", "rate"),
    "keep": ("keep", "mask", "kept", "survivors", "m"),
    "state": ("state", "checkpoint", "ckpt", "saved", "data"),
}
COMMENTS = ("# normalise", "# this is the part from the lecture", "# TODO check", "# see the docs", "", "", "", "")


def batchnorm(dice: random.Random, wrong: str = "") -> str:
    """One MyBatchNorm; ``wrong`` names the decision that is wrong."""
    pick, c = dice.choice, dice.choice(CHANNELS)
    n = {name: pick(NAMES[name]) for name in ("axes", "mean", "var", "shape", "count", "factor")}
    if n["mean"] == n["factor"]:
        n["factor"] = "factor"
    buffers = {"running_mean": f"torch.zeros({c})", "running_var": f"torch.ones({c})"}
    buffers["num_batches_tracked"] = pick(("torch.tensor(0)", "torch.tensor(0, dtype=torch.long)"))
    if wrong == "no_counter":
        buffers.pop("num_batches_tracked")
    if wrong == "plain_tensors":
        made = [f"self.{name} = {value}" for name, value in buffers.items()]
    elif dice.random() < 0.25:
        made = [f"self.{name} = nn.Buffer({value})" for name, value in buffers.items()]
    else:
        made = [f'self.register_buffer("{name}", {value})' for name, value in buffers.items()]
    settings = pick((["self.eps = eps", "self.momentum = momentum"], ["self.eps, self.momentum = eps, momentum"]))
    parameters = [
        f"self.weight = nn.Parameter({pick((f'torch.ones({c})', f'torch.ones(({c},))', f'torch.full(({c},), 1.0)'))})",
        f"self.bias = nn.Parameter({pick((f'torch.zeros({c})', 'torch.zeros_like(self.weight)'))})",
    ]
    blocks = [settings, parameters, made]
    dice.shuffle(blocks)
    axes = pick(
        (
            f"{n['axes']} = [0] if x.dim() == 2 else [0, 2]",
            f"{n['axes']} = (0,) if x.ndim == 2 else (0, 2)",
            f"{n['axes']} = [d for d in range(x.dim()) if d != 1]",
            f"{n['axes']} = [0, *range(2, x.dim())]",
        )
    )
    if wrong == "first_axis_only":
        axes = f"{n['axes']} = [0]"
    count = pick(
        (
            f"{n['count']} = x.numel() // x.shape[1]",
            f"{n['count']} = x.numel() / x.size(1)",
            f"{n['count']} = x.shape[0] * (x.shape[2] if x.dim() == 3 else 1)",
        )
    )
    biased = pick(("unbiased=False", "correction=0"))
    variance = f"x.var({n['axes']}, {biased if wrong != 'unbiased_normalisation' else 'unbiased=True'})"
    if wrong != "unbiased_normalisation" and dice.random() < 0.3:
        variance = f"x.pow(2).mean({n['axes']}) - {n['mean']} ** 2"
    moved = pick(
        (
            f"{n['var']} * {n['count']} / ({n['count']} - 1)",
            f"x.var({n['axes']}, unbiased=True)",
            f"x.var({n['axes']})",
            f"{n['var']} * ({n['count']} / ({n['count']} - 1))",
        )
    )
    if wrong == "biased_running_variance":
        moved = n["var"]
    old, new = f"1 - {n['factor']}", n["factor"]
    if wrong == "momentum_as_decay":
        old, new = new, f"({old})"
    update = pick(
        (
            ["self.{b}.mul_({old}).add_({new} * ({value}))"],
            ["self.{b}.copy_(({old}) * self.{b} + {new} * ({value}))"],
            ["self.{b} *= {old}", "self.{b} += {new} * ({value})"],
        )
    )
    if wrong == "rebound_buffers":
        update = ["self.{b} = ({old}) * self.{b} + {new} * ({value})"]
    moves = [
        line.format(b=buffer, old=old, new=new, value=value)
        for buffer, value in (("running_mean", n["mean"]), ("running_var", moved))
        for line in update
    ]
    choose = (
        f"{n['factor']} = self.momentum if self.momentum is not None else 1 / self.num_batches_tracked.item()",
        f"{n['factor']} = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum",
    )
    factor = pick(choose)
    if wrong in ("momentum_none_ignored", "no_counter"):
        factor = f"{n['factor']} = self.momentum if self.momentum is not None else 0.1"
    counted = (
        [] if wrong == "no_counter" else [pick(("self.num_batches_tracked += 1", "self.num_batches_tracked.add_(1)"))]
    )
    error = pick(("need more than one value", "one value per channel", "cannot normalise a single value"))
    guard = [f"if {n['count']} <= 1:", f'    raise ValueError("{error}")']
    graph = pick(
        ("with torch.no_grad():", "with torch.no_grad():", "with torch.inference_mode(False), torch.no_grad():")
    )
    inside = [*counted, factor, *moves]
    train = [
        f"{n['mean']} = x.mean({n['axes']})",
        f"{n['var']} = {variance}",
        graph,
        *(f"    {line}" for line in inside),
    ]
    own = f"{n['mean']}, {n['var']} = self.running_mean, self.running_var"
    if wrong == "batch_statistics_in_eval":
        own = f"{n['mean']}, {n['var']} = x.mean({n['axes']}), x.var({n['axes']}, {biased})"
    shape = pick(
        (
            f"{n['shape']} = [1, -1] + [1] * (x.dim() - 2)",
            f"{n['shape']} = (1, -1) if x.dim() == 2 else (1, -1, 1)",
            f"{n['shape']} = (1, x.shape[1], *([1] * (x.ndim - 2)))",
        )
    )
    at = f".view({n['shape']})" if dice.random() < 0.5 else f".reshape({n['shape']})"
    root = pick(
        (f"torch.sqrt({n['var']} + self.eps)", f"({n['var']} + self.eps).sqrt()", f"({n['var']} + self.eps) ** 0.5")
    )
    if wrong == "epsilon_outside_the_root":
        root = f"({n['var']}.sqrt() + self.eps)"
    last = pick(
        (
            [
                f"x_hat = (x - {n['mean']}{at}) / ({root}){at}",
                f"return x_hat * self.weight{at} + self.bias{at}",
            ],
            [f"return (x - {n['mean']}{at}) / ({root}){at} * self.weight{at} + self.bias{at}"],
            [
                f"scale = self.weight / ({root})",
                f"return (x - {n['mean']}{at}) * scale{at} + self.bias{at}",
            ],
            [
                f"out = (x - {n['mean']}{at}) / ({root}){at}",
                f"out = out * self.weight{at}",
                f"return out + self.bias{at}",
            ],
        )
    )
    body = [axes, count, shape] if dice.random() < 0.5 else [shape, axes, count]
    lines = [
        "class MyBatchNorm(nn.Module):",
        f"    def __init__(self, {c}, eps=1e-5, momentum=0.1):",
        "        super().__init__()",
        *(f"        {line}" for block in blocks for line in block),
        "",
        f"    def forward(self, x):  {pick(COMMENTS)}".rstrip(),
        *(f"        {line}" for line in body),
        "        if self.training:",
        *(f"            {line}" for line in [*guard, *train]),
        "        else:",
        f"            {own}",
        *(f"        {line}" for line in last),
    ]
    return "\n".join(lines)


def dropout(dice: random.Random, wrong: str = "") -> str:
    """One MyDropout; ``wrong`` names the decision that is wrong."""
    pick, keep = dice.choice, dice.choice(NAMES["keep"])
    refuse = pick(("p < 0 or p > 1", "not 0 <= p <= 1", "not (0.0 <= p <= 1.0)"))
    said = pick(("p must be between 0 and 1", "bad p", "dropout probability has to be between 0 and 1, but got {p}"))
    drawn = pick(
        (
            f"{keep} = (torch.rand_like(x) >= self.p).to(x.dtype)",
            f"{keep} = torch.rand_like(x) < 1 - self.p",
            f"{keep} = torch.empty_like(x).bernoulli_(1 - self.p)",
            f"{keep} = (torch.rand(x.shape, device=x.device) > self.p).float()",
        )
    )
    if wrong == "keep_probability":
        drawn = f"{keep} = (torch.rand_like(x) < self.p).to(x.dtype)"
    if wrong == "one_mask_for_all_rows":
        drawn = f"{keep} = torch.rand(x.shape[-1], device=x.device) >= self.p"
    result = pick((f"return x * {keep} / (1 - self.p)", f"return {keep} * x / (1 - self.p)"))
    if wrong == "no_scaling":
        result = f"return x * {keep}"
    idle = (
        "self.p == 0" if wrong == "always_active" else pick(("not self.training", "not self.training or self.p == 0"))
    )
    check = [f"        if {refuse}:", f'            raise ValueError("{said}")']
    return "\n".join(
        [
            "class MyDropout(nn.Module):",
            "    def __init__(self, p=0.5):",
            "        super().__init__()",
            *([] if wrong == "any_probability" else check),
            "        self.p = p",
            "",
            "    def forward(self, x):",
            f"        if {idle}:",
            "            return x",
            "        if self.p == 1:",
            f"            return {pick(('x * 0', 'torch.zeros_like(x) * x', '0 * x'))}",
            f"        {drawn}",
            f"        {result}",
        ]
    )


def checkpoint(dice: random.Random, wrong: str = "") -> str:
    """Both functions of save_and_resume; ``wrong`` names what is forgotten."""
    pick, state = dice.choice, dice.choice(NAMES["state"])
    keys = {
        "model": "model",
        "optimizer": pick(("optimizer", "opt", "optim")),
        "scheduler": pick(("scheduler", "sched")),
    }
    torch_key, python_key = pick(("rng", "torch_rng", "torch_random")), pick(("python_rng", "py_random", "random"))
    saved = [f'"{key}": {part}.state_dict()' for part, key in keys.items() if wrong != f"{part}_forgotten"]
    saved += ['"epoch": epoch', f'"{torch_key}": torch.get_rng_state()']
    loaded = [f'{part}.load_state_dict({state}["{key}"])' for part, key in keys.items() if wrong != f"{part}_forgotten"]
    loaded.append(f'torch.set_rng_state({state}["{torch_key}"])')
    if wrong != "python_random_forgotten":
        saved.append(f'"{python_key}": random.getstate()')
        loaded.append(f'random.setstate({state}["{python_key}"])')
    if dice.random() < 0.5:
        middle = saved[1:]
        dice.shuffle(middle)
        saved = [saved[0], *middle]
    read = pick(('torch.load(path, map_location="cpu")', "torch.load(path)", "torch.load(path, weights_only=True)"))
    if wrong != "python_random_forgotten":
        read = read.replace("weights_only=True", "weights_only=False")
    back = f'{state}["epoch"]' if wrong == "same_epoch_again" else f'{state}["epoch"] + 1'
    if dice.random() < 0.5:
        save = [f"    torch.save({{{', '.join(saved)}}}, path)"]
    else:
        save = [
            f"    {state} = {{",
            *(f"        {entry}," for entry in saved),
            "    }",
            f"    torch.save({state}, path)",
        ]
    return "\n".join(
        [
            "import random",
            "",
            "def save_checkpoint(path, model, optimizer, scheduler, epoch):",
            *save,
            "",
            "def load_checkpoint(path, model, optimizer, scheduler):",
            f"    {state} = {read}",
            *(f"    {line}" for line in loaded),
            f"    return {back}",
        ]
    )


WRONG = {
    "my_batchnorm": (
        ["biased_running_variance"] * 5
        + ["momentum_as_decay"] * 3
        + ["plain_tensors", "plain_tensors", "momentum_none_ignored", "momentum_none_ignored", "first_axis_only"]
        + ["batch_statistics_in_eval", "epsilon_outside_the_root", "no_counter", "rebound_buffers"]
        + ["unbiased_normalisation"]
    ),
    "my_dropout": ["no_scaling"] * 4
    + ["keep_probability"] * 2
    + ["one_mask_for_all_rows", "any_probability", "always_active"],
    "save_and_resume": ["python_random_forgotten"] * 4
    + ["same_epoch_again"] * 3
    + ["optimizer_forgotten", "scheduler_forgotten"],
}
MAKERS = {"my_batchnorm": batchnorm, "my_dropout": dropout, "save_and_resume": checkpoint}


def student_answers(number: int) -> Answers:
    """What an honest student hands in: the better ones get more of it right, and some leave the last part out."""
    dice = random.Random(number)
    ability = dice.betavariate(2.2, 1.6)
    answers: Answers = {}
    for place, (name, make) in enumerate(MAKERS.items()):
        if ability < 0.3 and dice.random() < 0.25 * place + 0.1:
            continue
        right = dice.random() < 0.15 + 0.85 * ability
        answers[name] = make(dice, "" if right else dice.choice(WRONG[name]))
    return answers


def renamed(answer: str) -> str:
    """The same answer in disguise: other names, other comments, other spacing."""
    changed = re.sub(r"#.*", "# my own work", answer)
    for number, name in enumerate(
        sorted({name for names in NAMES.values() for name in names} - {"momentum", "random"})
    ):
        changed = re.sub(rf"(?<![.\"'\w]){re.escape(name)}(?![\w\"'=(])", f"value_{number}", changed)
    return changed.replace(" + ", "+").replace("\n\n", "\n\n\n")


def from_template(dice: random.Random) -> str:
    """MyBatchNorm from the second hint's template, its gaps filled as most people fill them."""
    own = batchnorm(dice).split("    def forward")[0]
    own = re.sub(r"\b(" + "|".join(CHANNELS) + r")\b", "num_features", own)
    return own + "\n".join(
        [
            "    def forward(self, x):",
            "        axes = [0] + list(range(2, x.dim()))",
            "        if self.training:",
            "            mean, var = x.mean(axes), x.var(axes, unbiased=False)",
            "            with torch.no_grad():",
            "                self.num_batches_tracked += 1",
            "                self.running_mean.lerp_(mean, self.momentum)",
            "                self.running_var.lerp_(x.var(axes), self.momentum)",
            "        else:",
            "            mean, var = self.running_mean, self.running_var",
            "        shape = [1, -1] + [1] * (x.dim() - 2)",
            "        x_hat = (x - mean.view(shape)) / (var.view(shape) + self.eps).sqrt()",
            "        return x_hat * self.weight.view(shape) + self.bias.view(shape)",
        ]
    )


# Who hands in something that a person should see, by the place in the class.
COPIED_FROM, COPIED_BY = 4, 17
TEMPLATE_FILLED = (8, 22, 31)
TORCHS_OWN, FUNCTIONAL, LEAVES_EARLY, FORGES, DOES_NOT_RUN = 11, 26, 35, 44, 13


def class_of(size: int) -> dict[str, Answers]:
    """Student -> answers, for a class of 48 or more: honest ones, and those that a report has to find."""
    everyone = {place: student_answers(1000 + place) for place in range(size)}
    everyone[COPIED_FROM]["my_batchnorm"] = batchnorm(random.Random(7), "biased_running_variance")
    everyone[COPIED_BY] = {**everyone[COPIED_BY], "my_batchnorm": renamed(everyone[COPIED_FROM]["my_batchnorm"])}
    for place in TEMPLATE_FILLED:
        everyone[place] = {**everyone[place], "my_batchnorm": from_template(random.Random(place))}
    everyone[TORCHS_OWN] = {"my_batchnorm": "MyBatchNorm = nn.BatchNorm1d", "my_dropout": "MyDropout = nn.Dropout"}
    functional = RIGHT_DROPOUT.replace("return x * mask / (1 - self.p)", "return F.dropout(x, self.p)")
    everyone[FUNCTIONAL]["my_dropout"] = "from torch.nn import functional as F\n" + functional
    everyone[LEAVES_EARLY]["my_dropout"] = "import os\nos._exit(0)"
    everyone[FORGES]["save_and_resume"] = "import random\n" + RIGHT_CHECKPOINT.replace(
        "optimizer, scheduler):\n", f"optimizer, scheduler):\n    display({{{EMISSION_TYPE!r}: {{}}}}, raw=True)\n"
    )
    everyone[DOES_NOT_RUN] = {
        **SUBMISSIONS["ada_all_right"],
        "my_dropout": RIGHT_DROPOUT.replace("return x\n", "return x)\n", 1),
    }
    return {f"s{place + 1:03}": answers for place, answers in everyone.items()}
