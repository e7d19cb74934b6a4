# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Chapter 9 · Mastery
#
# You have taken `nn.Module` apart, piece by piece. In this last chapter you put the pieces to work: a layer that holds
# everything in its place, three recipes with hooks, a fine-tuning that forgets nothing, a sick model of your own to
# diagnose, and a check that you write yourself. At the end you train, inspect, export and reload a small network.
#
# Plan for five to six hours: one and a half of reading and predicting, the rest for seven exercises and a capstone. It
# is a chapter for several evenings; every exercise stands alone.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import io
import tempfile
import time

import torch
from torch import nn
from torch.export import Dim, export

from autograder import check, predict, quiz, recall
from autograder.clinic import FAULTS, admit
from autograder.datasets import load_digits
from simulations import LifeOfAModule, show

# %% [markdown]
# ## A recipe that clips nothing
#
# A training run explodes. Somebody finds a recipe for gradient clipping on the internet: a hook that clamps what a
# layer passes back. They put it on every layer, and the run explodes as before. Here is the recipe; read what it
# returns.


# %%
def clip_hook(module, grad_input, grad_output):
    return tuple(None if grad is None else grad.clamp(-1, 1) for grad in grad_input)


# %% [markdown]
# Put it on one layer and make the gradients large on purpose. Look at which of the two gradients is clipped.

# %%
torch.manual_seed(0)
layer = nn.Linear(2, 2)
layer.register_full_backward_hook(clip_hook)
x = torch.ones(1, 2, requires_grad=True)
(layer(x) * 100).sum().backward()
print("gradient of the input: ", x.grad.abs().max().item())
print("gradient of the weight:", layer.weight.grad.abs().max().item())

# %% [markdown]
# The hook runs, and it clips: the gradient that flows to **earlier layers**. The weight, which is what the optimizer
# reads, keeps its 100. Nothing raised, nothing warned. On the first layer of a network, whose input asks for no
# gradient, there is not even anything to clip.
#
# Recipes like this one circulate because they run. This chapter goes through three of them, finds what each does in
# truth, and replaces it. First three questions on earlier chapters, from memory.

# %%
recall("ch09")

# %% [markdown]
# ## A life, from registration to export
#
# Before the details, the whole once more. The simulation lives one life of a small classifier, with real torch:
# built, registered, trained, switched, saved, loaded, exported. Step through it, and name at each step the chapter
# that took it apart. Find the moment at which buffers move without an optimizer, and the one at which parameters do.

# %%
LifeOfAModule()

# %% [markdown]
# A module is a tree. Parameters and buffers hang on its branches, hooks are sensors on them, and a call runs from the
# root downwards, in the order that your `forward` chooses. `state_dict()` is no photograph of the tree but a window
# on it (chapter 3), and `torch.export` turns one way through it into a program without Python (chapter 8).
#
# Here is the life as a table, with the sentence that most people would have written before this course.
#
# | stage | often said | what you know now |
# |---|---|---|
# | construction | `__init__` registers the layers | `__setattr__` does, whenever an assignment happens (chapter 1) |
# | forward | `__call__` builds the graph for autograd | the operations build it; `__call__` adds the hooks (chapter 5) |
# | training | the optimizer asks the model for its parameters | it asked once, when it was made (chapter 2) |
# | many GPUs | DDP and FSDP use hooks | DDP hooks the parameters' accumulation; FSDP2 hooks modules too (chapter 5) |
# | saving | a file is a snapshot | `state_dict()` is live; the file is the snapshot (chapter 3) |
# | export | trace, or script | both are history; `torch.export` is the way (chapter 8) |

# %% [markdown]
# ## The template of a layer
#
# Most layers you will ever write have four kinds of contents: something trained, something optional, something
# counted, something nested. Each has one right place, and you have met them all. The optional one is the one that
# people get wrong: without a bias, should the attribute be `None`, or an empty slot, as in chapter 2? Look at who
# refuses a tensor that somebody assigns by mistake.

# %%
slot, plain = nn.Module(), nn.Module()
slot.register_parameter("bias", None)
plain.bias = None
for name, module in {"empty slot": slot, "plain None": plain}.items():
    try:
        module.bias = torch.zeros(2)
        print(name, "| accepted; parameters:", len(list(module.parameters())))
    except TypeError as error:
        print(name, "| TypeError |", str(error)[:47])

# %% [markdown]
# The slot is a promise: nothing but a parameter will ever stand here. A plain `None` promises nothing, and takes a
# tensor that nobody will train.
#
# The counter hides a choice too. `self.running_count += 1` changes the buffer in place: same tensor, still
# registered, and no gradient is near an integer. But the line runs at every call. Look at who is counted.


# %%
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("running_count", torch.tensor(0))

    def forward(self, x):
        self.running_count += 1
        return x


counting = Counts()
counting(torch.ones(1))
counting.eval()(torch.ones(1))
print("training calls: 1 | counted:", counting.running_count.item())

# %% [markdown]
# A prediction is not a batch that was learned from. Ask `self.training` first. (Under activation checkpointing the
# forward runs twice, and so does any counter: chapter 3.) Now write the layer that the four choices lead to.

# %% [markdown]
# {{card my_custom_layer}}


# %% nbgrader={"grade": false, "grade_id": "my_custom_layer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyCustomLayer(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features**0.5)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)
        self.register_buffer("running_count", torch.tensor(0))
        self.norm = nn.LayerNorm(out_features)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if self.training:
            self.running_count += 1
        out = x @ self.weight.T
        if self.bias is not None:
            out = out + self.bias
        return self.norm(out)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_custom_layer_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_custom_layer", MyCustomLayer)

# %% [markdown]
# {{hints my_custom_layer}}

# %% [markdown]
# ## Clipping what the optimizer sees
#
# Back to the run that explodes. The optimizer reads `.grad` of each parameter, so that is what has to be clipped. In
# your own training loop one line does it, between `backward()` and `step()`. There are two such lines,
# `clip_grad_value_` and `clip_grad_norm_`, and they do different things. Take a gradient of (3, 0.1) and the limit 1, and
# work out both by hand first.

# %%
for clip in (nn.utils.clip_grad_value_, nn.utils.clip_grad_norm_):
    weight = nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 0.1])
    clip([weight], 1.0)
    print(clip.__name__, [round(value, 3) for value in weight.grad.tolist()])

# %% [markdown]
# By value, each number is cut at the limit, and the direction changes. By norm, the whole gradient is shortened until
# its length is 1, and the direction stays. When the loop is not yours, a hook has to do it.
#
# ### The two hooks of a tensor
#
# A parameter is a tensor, and a tensor has hooks of its own. `register_hook` runs when a gradient has been computed,
# before it is added to `.grad`. `register_post_accumulate_grad_hook` runs after it was added. Predict what that means
# for a limit.

# %%
predict("ch09-two-hooks")

# %% [markdown]
# Two backward passes without `zero_grad()`, with gradients 3 and 5, and the limit 4. Look at what is left in `.grad`.


# %%
def clamp_contribution(gradient):
    return gradient.clamp(-4, 4)


def clamp_sum(parameter):
    parameter.grad.clamp_(-4, 4)


for kind, hook in {"register_hook": clamp_contribution, "register_post_accumulate_grad_hook": clamp_sum}.items():
    weight = torch.zeros(1, requires_grad=True)
    getattr(weight, kind)(hook)
    (3.0 * weight).sum().backward()
    (5.0 * weight).sum().backward()
    print(kind, "|", weight.grad.item())

# %% [markdown]
# 7 is above the limit. To see why, let each hook print what it is handed, and what is in `.grad` at that moment.

# %%
for kind in ("register_hook", "register_post_accumulate_grad_hook"):
    weight = torch.zeros(1, requires_grad=True)
    getattr(weight, kind)(lambda given: print(f"{kind}: handed {given.tolist()}, .grad is {weight.grad}"))
    (3.0 * weight).sum().backward()
    (5.0 * weight).sum().backward()

# %% [markdown]
# The first kind is handed each contribution, and may return another one in its place. The second is handed the
# **parameter**, when the sum is complete, and there is nothing to replace: it changes `.grad` in place. Now look at
# what happens to the shortest way to write that.

# %%
weight = torch.zeros(1, requires_grad=True)
weight.register_post_accumulate_grad_hook(lambda parameter: parameter.grad.clamp_(-1, 1))
try:
    (9.0 * weight).sum().backward()
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# `clamp_` returns the tensor that it changed, a lambda returns what its expression returns, and this kind of hook must
# return nothing. Which of the two hooks keeps the promise "what the optimizer sees lies within the limit"?

# %% [markdown]
# {{card clip_gradients}}


# %% nbgrader={"grade": false, "grade_id": "clip_gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip_gradients(model, limit):
    ### BEGIN SOLUTION
    def clip(parameter):
        parameter.grad.clamp_(-limit, limit)

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [parameter.register_post_accumulate_grad_hook(clip) for parameter in trained]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "clip_gradients_check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("clip_gradients", clip_gradients)

# %% [markdown]
# {{hints clip_gradients}}

# %% [markdown]
# ## Features that leave no trace
#
# The second recipe collects what an inner layer returns, to train something else on it. It reads `model.layer3`, so it
# needs a model with that attribute, and it keeps `output.detach()`. From chapter 4 you know what detaching does not
# do. Look at the signs: a linear layer returns some negative numbers here, and the next layer works in place.

# %%
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 6), nn.ReLU(inplace=True))
kept = {}


def keep(module, args, output):
    kept["detached"], kept["copied"] = output.detach(), output.detach().clone()


with net[0].register_forward_hook(keep):
    net(torch.ones(4, 2))
print({name: bool((value < 0).any()) for name, value in kept.items()})

# %% [markdown]
# `detached` shows what the ReLU wrote over it. A copy shows what the layer returned.
#
# A feature extractor is also a guest in somebody's model. It switches to eval mode, registers a hook, runs batches.
# What it must put back is easy to underestimate. Predict what the usual two lines do to a model that is being
# fine-tuned.

# %%
predict("ch09-modes")

# %% [markdown]
# The model trains, and its BatchNorm was put in eval mode on purpose. A guest calls `eval()`, works, and calls
# `train()`. Look at the mode of the BatchNorm before and after.

# %%
hosted = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())
hosted.train()[1].eval()
print("before:", [part.training for part in hosted])
hosted.eval()
hosted.train()
print("after: ", [part.training for part in hosted])

# %% [markdown]
# Every module has a flag of its own, so a guest has as many flags to remember. One last trap is in the name of a
# context manager that looks like the better `no_grad`. Look at what a later training says about such features.

# %%
with torch.inference_mode():
    features = net(torch.ones(1, 2))
try:
    nn.Linear(6, 1)(features).sum().backward()
except RuntimeError as error:
    print("RuntimeError |", str(error).split(".")[0])

# %% [markdown]
# `inference_mode` is for results that nobody will ever train on. A guest also cleans up when something breaks on the
# way, which is what `try … finally` is for.

# %% [markdown]
# {{card extract_features}}


# %% nbgrader={"grade": false, "grade_id": "extract_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
def extract_features(model, path, batches):
    ### BEGIN SOLUTION
    collected = []

    def keep_first(module, args, output):
        first = output[0] if isinstance(output, tuple) else output
        collected.append(first.detach().clone())

    modes = {part: part.training for part in model.modules()}
    handle = model.get_submodule(path).register_forward_hook(keep_first)
    try:
        model.eval()
        with torch.no_grad():
            for batch in batches:
                model(batch)
    finally:
        handle.remove()
        for part, training in modes.items():
            part.training = training
    return torch.cat(collected)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "extract_features_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("extract_features", extract_features)

# %% [markdown]
# {{hints extract_features}}

# %% [markdown]
# ## Channels that stay silent
#
# The third recipe prunes: it sets the weakest output channels of a layer to zero. It takes a norm over three axes of a
# convolution's weight, and stops there, on every kind of layer. Look at the message, and at the call that means what
# the recipe wanted.

# %%
torch.manual_seed(0)
conv = nn.Conv2d(3, 16, 3)
try:
    conv.weight.norm(dim=(1, 2, 3))
except RuntimeError as error:
    print("RuntimeError |", error)
strengths = torch.linalg.vector_norm(conv.weight.detach().flatten(1), dim=1)
print("one number a channel:", tuple(strengths.shape))

# %% [markdown]
# A norm over two axes is a matrix norm, over three there is none. Flatten first, and the same line serves Linear,
# Conv1d and Conv2d alike.
#
# The recipe goes on with a threshold: everything up to the 0.2 quantile is pruned. Count what that gives for several
# numbers of channels, and for ten that are equally strong.

# %%
for channels in (10, 16, 3):
    ranked = torch.arange(float(channels))
    print(
        channels,
        "channels | pruned:",
        int((ranked <= ranked.quantile(0.2)).sum()),
        "| a fifth:",
        round(0.2 * channels, 1),
    )
equal = torch.ones(10)
print("10 equal ones | pruned:", int((equal <= equal.quantile(0.2)).sum()))

# %% [markdown]
# Two of ten is right, four of sixteen is a quarter, and of ten equal ones nothing is left: a threshold answers another
# question than "how many". Choose a number of channels instead, rounded, and take that many.
#
# ### Zero is not for ever
#
# A weight that is set to zero is still a parameter. One weight, SGD with momentum 0.9 and rate 0.1, and a gradient of
# 1 for one step. Then it is set to zero, and its gradient is held at zero as well. Predict the next step.

# %%
predict("ch09-regrow")

# %% [markdown]
# Follow the number by hand: after the first step the optimizer remembers 1. What does it make of a gradient of 0?

# %%
weight = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
for gradient in (1.0, 0.0):
    with torch.no_grad():
        weight.zero_()
    weight.grad = torch.tensor([gradient])
    optimizer.step()
    print("gradient", gradient, "| weight after the step:", round(weight.item(), 3))

# %% [markdown]
# 0.9 · 1 is remembered, a tenth of it is stepped. That is one force. The other was held at zero here: in an ordinary run
# a weight of zero gets a gradient like any other. (Weight decay is none: it shrinks, and a zero stays zero.) So the zero
# has to be set again, at the last moment at which nobody can undo it: just before each forward. Which hook runs then?
# And it must silence the layer that is **called**: a deep copy of a layer takes its hooks along.
#
# torch's own tool is `torch.nn.utils.prune`; `ln_structured` prunes whole rows by their norm. Look at how it solves the
# same problem: it renames the parameter, keeps the mask as a buffer, and computes the product in a pre-hook.

# %%
from torch.nn.utils import prune

pruned_layer = prune.ln_structured(nn.Linear(3, 10), "weight", amount=0.2, n=2, dim=0)
print("parameters:", [name for name, _ in pruned_layer.named_parameters()])
print("buffers:   ", [name for name, _ in pruned_layer.named_buffers()])
print("pre-hooks: ", [type(hook).__name__ for hook in pruned_layer._forward_pre_hooks.values()])

# %% [markdown]
# Your version keeps the parameter's name, so that files and optimizers notice nothing.

# %% [markdown]
# {{card prune_channels}}


# %% nbgrader={"grade": false, "grade_id": "prune_channels", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prune_channels(layer, amount):
    ### BEGIN SOLUTION
    strength = torch.linalg.vector_norm(layer.weight.detach().flatten(1), dim=1)
    chosen = strength.argsort()[: round(amount * len(strength))].tolist()

    def silence(module, args):
        with torch.no_grad():
            module.weight[chosen] = 0

    layer.register_forward_pre_hook(silence)
    return sorted(chosen)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "prune_channels_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("prune_channels", prune_channels)

# %% [markdown]
# {{hints prune_channels}}

# %% [markdown]
# ## Fine-tuning without surprises
#
# A trained backbone, a new head. You freeze the first and train the second: two lines, in every tutorial. The
# surprises are in what those two lines leave out.
#
# ### Three things that move a frozen number
#
# `requires_grad_(False)` tells autograd to compute no gradient from now on. Suppose that you freeze a layer in the
# middle of a run, just after a `backward()`. Predict whether the next `step()` moves it.

# %%
predict("ch09-stale")

# %% [markdown]
# One layer, frozen between `backward()` and `step()`. Look at the two answers.

# %%
layer = nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(1, 2)).sum().backward()
layer.requires_grad_(False)
for situation in ("frozen, the old gradient still there", "frozen, after zero_grad()"):
    before = layer.weight.clone()
    optimizer.step()
    print(situation, "| moved:", not torch.equal(before, layer.weight))
    optimizer.zero_grad()

# %% [markdown]
# The optimizer never asks whether a parameter requires a gradient. Read its own lines: what does it ask?

# %%
source = inspect.getsource(torch.optim.SGD._init_group).splitlines()
print("\n".join(line for line in source if "for p in" in line or "grad is not None" in line))

# %% [markdown]
# So the first mover is an old gradient, and the second an optimizer that still holds the parameter. The third needs
# neither. A BatchNorm whose parameters are frozen, in training mode, sees one batch of tens. Look at its mean, and at
# what the flag does when it is set on the module instead of on its parameters.

# %%
norm = nn.BatchNorm1d(1).requires_grad_(False)
norm(torch.tensor([[9.0], [11.0]]))
print("frozen, running_mean:", norm.running_mean.item())
norm.requires_grad = True
print("norm.requires_grad = True, and the weight says:", norm.weight.requires_grad)

# %% [markdown]
# Statistics move in `forward`; only eval mode stops them. A loop that calls `model.train()` at each epoch switches them
# on again, so freeze after it, or override `train` in your own class. And `requires_grad` on a module is just an
# attribute with a promising name: the method ends in an underscore.
#
# ### Groups
#
# What goes on may go on at different speeds. An optimizer takes a list of groups, each a dict with its own settings;
# what a group does not say comes from the arguments. Look at the two rates, and at what an optimizer says to a model
# in which nothing is left to train.

# %%
model = nn.ModuleDict({"backbone": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
groups = [{"params": model["backbone"].parameters(), "lr": 1e-5}, {"params": model["head"].parameters()}]
print([group["lr"] for group in torch.optim.AdamW(groups, lr=1e-3).param_groups])
model.requires_grad_(False)
try:
    torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# ### What an optimizer remembers
#
# A new optimizer starts without a memory: Adam's moments and SGD's momentum are gone, and the first steps are another
# run's. You can hand the old state over. In a living optimizer it is keyed by the parameter. In its `state_dict()` it
# cannot be, so what takes its place? Predict.

# %%
predict("ch09-position")

# %% [markdown]
# Two models with the same two weights, `a` and `b`, created in another order. In the first, `a` has a gradient of 100
# and `b` of 1, and SGD remembers both. Its state is loaded into the optimizer of the second.


# %%
def two_weights(*names):
    return nn.ParameterDict([(name, nn.Parameter(torch.zeros(1))) for name in names])


first, second = two_weights("a", "b"), two_weights("b", "a")
old, new = (torch.optim.SGD(model.values(), lr=0.1, momentum=0.9) for model in (first, second))
first["a"].grad, first["b"].grad = torch.tensor([100.0]), torch.tensor([1.0])
old.step()
new.load_state_dict(old.state_dict())
print("keys:", list(old.state_dict()["state"]))
print(
    "remembered for a:",
    old.state[first["a"]]["momentum_buffer"].item(),
    "then",
    new.state[second["a"]]["momentum_buffer"].item(),
)

# %% [markdown]
# Positions, not names, and no error: the shapes were the same. `load_state_dict` of a *model* goes by name, that of an
# *optimizer* by position. Leave out the frozen parameters at the front, and everybody behind them moves up. Here is the
# comment in torch's own source that says so.

# %%
source = inspect.getsource(torch.optim.Optimizer.state_dict).splitlines()
print("\n".join(line.strip() for line in source if "order indices" in line))

# %% [markdown]
# {{card freeze_and_finetune}}


# %% nbgrader={"grade": false, "grade_id": "freeze_and_finetune", "locked": false, "schema_version": 3, "solution": true, "task": false}
def freeze_and_finetune(model, optimizer, frozen, rates):
    ### BEGIN SOLUTION
    def lies_in(name, path):
        return name == path or name.startswith(path + ".")

    for path in frozen:
        part = model.get_submodule(path).requires_grad_(False).eval()
        part.zero_grad(set_to_none=True)
    old_group = optimizer.param_groups[0]
    settings = {key: value for key, value in old_group.items() if key not in ("params", "lr")}
    by_rate = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            rate = next((rates[path] for path in rates if lies_in(name, path)), old_group["lr"])
            by_rate.setdefault(rate, []).append(parameter)
    fresh = type(optimizer)([{"params": params, "lr": rate, **settings} for rate, params in by_rate.items()])
    for params in by_rate.values():
        for parameter in params:
            fresh.state[parameter] = optimizer.state[parameter]
    return fresh
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "freeze_and_finetune_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("freeze_and_finetune", freeze_and_finetune)

# %% [markdown]
# {{hints freeze_and_finetune}}

# %% [markdown]
# ## Seven faults and their traces
#
# So far you met each fault alone, in the chapter that explains it. In the wild they come together and without a label.
# The course keeps a clinic. Its patients are models, each admitted under a text; the same text always gives the same
# patient. These are the faults that occur there.

# %%
for fault, meaning in FAULTS.items():
    print(f"{fault:19} {meaning}")

# %% [markdown]
# Every patient has some of them, and besides them oddities that look like faults and are none. A patient brings its
# model, its optimizer, a batch to try, and a letter in which the owner says how things are meant to be.

# %%
patient = admit("write your student id here")
print("children:", [name for name, _ in patient.model.named_children()])
print("a block: ", [name for name, _ in patient.model.blocks[0].named_children()])
print("batch:   ", tuple(patient.sample.shape))
for topic, wish in patient.letter.items():
    print(f"{topic}: {wish}")

# %% [markdown]
# How do you look without touching? Each of the seven is written down somewhere. The attributes of a module are in
# `vars(module)`; its hooks in dicts such as `_forward_hooks`; a flag is a flag. Two traces are in no single object:
# whether two names mean one tensor, and whether the optimizer holds a parameter. Look at the difference between the
# two questions that one can ask there, on two weights that start alike.

# %%
one = nn.Parameter(torch.zeros(2))
twin = nn.Parameter(torch.zeros(2))
print("equal:", torch.equal(one, twin), "| the same:", one is twin, "| ids differ:", id(one) != id(twin))

# %% [markdown]
# Equal today, and apart after the first step. `tensor in list` asks for equality too, element by element, and stumbles
# over the answer. Collect `id(parameter)` in a set, or put the parameters themselves into one: a set of tensors goes by
# identity.
#
# When looking is not enough, experiment on a **copy**. A forward moves statistics and counters, and a doctor who
# changes the patient has made an eighth fault. Look at whose mean moved.

# %%
ward = nn.BatchNorm1d(1)
trial = copy.deepcopy(ward)
trial(torch.tensor([[9.0], [11.0]]))
print("copy:", trial.running_mean.item(), "| patient:", ward.running_mean.item())

# %% [markdown]
# Take your own patient first, by hand: put your id into the cell above, look around in new cells, and write down what
# you find. Then turn your seven looks into a program, which the check will send to other patients.

# %% [markdown]
# {{card sick_model}}


# %% nbgrader={"grade": false, "grade_id": "sick_model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def my_diagnosis():
    ### BEGIN SOLUTION
    found = {"leaked_hook": ["blocks.0.norm"], "unregistered": ["adapters"], "untied": ["blocks.1.linear.weight"]}
    return "ada", found
    ### END SOLUTION


def diagnose(patient):
    ### BEGIN SOLUTION
    model, found = patient.model, {name: [] for name in FAULTS}
    registered = set(model.modules())
    held = {parameter for group in patient.optimizer.param_groups for parameter in group["params"]}
    for path, part in model.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, list) and any(isinstance(v, nn.Module) and v not in registered for v in value):
                found["unregistered"].append(f"{path}.{name}" if path else name)
        if part._forward_hooks or part._forward_pre_hooks:
            found["leaked_hook"].append(path)
        if part.training != (patient.letter["mode"] == "train"):
            found["wrong_mode"].append(path)
        if isinstance(part, nn.BatchNorm1d) and part.momentum == 0.0:
            found["frozen_buffer"].append(path)
        if getattr(part, "inplace", False) and part._backward_hooks:
            found["inplace_under_hook"].append(path)
    for name, other in patient.letter["tied"]:
        if model.get_parameter(name) is not model.get_parameter(other):
            found["untied"].append(other)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter not in held:
            found["not_optimized"].append(name)
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sick_model_check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check("sick_model", my_diagnosis, diagnose)

# %% [markdown]
# {{hints sick_model}}

# %% [markdown]
# ## What a check is worth
#
# For nine chapters a check has looked at your code. Now look at a check. Somebody was to write a function that doubles,
# and here is the test, with two candidates. Work out what it says about each.

# %%
candidates = {"2 * x": lambda x: 2 * x, "x * x": lambda x: x * x}
for name, function in candidates.items():
    print(name, "| passes:", function(2.0) == 4.0)

# %% [markdown]
# Both pass: at 2 the right and the wrong one meet. A test input can be blind by accident, and the accidents are rarely
# random: 0, 1 and 2, a mean of zero, a weight of one, the default setting. The next accident points the other way.
# Predict it.

# %%
predict("ch09-false-alarm")

# %% [markdown]
# Two right layers add the same three numbers, each in its own order. Look at both answers.

# %%
one_way = 0.1 + 0.2 + 0.3
other_way = 0.3 + 0.2 + 0.1
print(one_way, other_way)
print("equal:", one_way == other_way, "| close:", abs(one_way - other_way) < 1e-12)

# %% [markdown]
# A check that rejects what is right is worse than none: people learn to ignore it. So a check has two duties, and they
# pull in opposite directions. It must accept **every** right design, however it is written, and reject **every** wrong
# one that people really write. The way to know is to try: keep several right designs and a zoo of wrong ones, and run
# the check on all of them. That is how the checks of this course were made, and the build fails when an animal of the
# zoo escapes.
#
# A check here is a *probe*: a generator that drives something and yields what it sees. It is run twice, on torch's
# layer and on yours, and the two lists of observations are compared. Here is a small one at work on two activations,
# `nn.ReLU` and `nn.LeakyReLU`, which lets a hundredth of a negative input through.


# %%
def small_probe(make):
    activation = make()
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = activation(x)
    yield "output", y.tolist()
    y.sum().backward()
    yield "gradient", x.grad.tolist()


print(list(small_probe(nn.ReLU)))
print(list(small_probe(nn.LeakyReLU)))

# %% [markdown]
# Your probe gets the hardest customer of the course: the BatchNorm of chapter 3, in several right designs and fifteen
# wrong ones. Think of the life of a layer, from its registries to the training after its first eval. Values by which
# a wrong layer could be right by chance are your worst enemies. If your probe rejects a right design, the report tells
# you which of your observations did it.

# %% [markdown]
# {{card be_the_grader}}


# %% nbgrader={"grade": false, "grade_id": "be_the_grader", "locked": false, "schema_version": 3, "solution": true, "task": false}
def probe(make):
    ### BEGIN SOLUTION
    layer = make(2, eps=0.5, momentum=0.3)
    yield "file", sorted(layer.state_dict())
    yield "trained", sorted(name for name, _ in layer.named_parameters())
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, -1.0]))
        layer.bias.copy_(torch.tensor([0.5, 3.0]))
    x = torch.tensor([[1.0, 5.0], [2.0, -1.0], [3.0, 0.5], [6.0, 0.0]], requires_grad=True)
    y = layer(x)
    y.pow(3).sum().backward()
    yield "output", y
    yield "gradient", x.grad
    yield "remembered", dict(sorted(layer.state_dict().items()))
    rows = x.detach() + 1
    yield "eval output", layer.eval()(rows)
    yield "the input afterwards", rows
    yield "remembered after eval", dict(sorted(layer.state_dict().items()))
    yield "training again", layer.train()(rows)
    averaging = make(2, momentum=None)
    for factor in (1.0, 4.0):
        averaging(factor * x.detach())
    yield "average of two batches", averaging.running_mean
    yield "in float64", layer.double().eval()(rows.double()), 1e-4
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "be_the_grader_check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("be_the_grader", probe)

# %% [markdown]
# {{hints be_the_grader}}

# %% [markdown]
# ## Capstone: a network of your own
#
# The course ships 1300 small drawings of digits, 8 by 8 grey values, made by a program with a shaky hand. The goal: a
# network with your own parts that gets **more than 93 of 100** new drawings right, trained in **under a minute** on
# this machine's CPU, then inspected, exported and reloaded. Look at one drawing first.

# %%
greys, digits = load_digits("training")
new_greys, new_digits = load_digits("test")
print(tuple(greys.shape), tuple(new_greys.shape), "| this is a", digits[4].item())
for row in greys[4].view(8, 8).tolist():
    print("".join(" .:-=+*#%@"[round(9 * grey)] for grey in row))

# %% [markdown]
# Three of the parts are from this chapter. **Paste six more at the top of the next cell**: `MyBatchNorm` and `MyDropout`
# (chapter 3), `MyReLU` (chapter 6), `inspect_model` (chapter 7), `save_program` and `load_program` (chapter 8). The cell
# says which are not here yet.

# %%
# Paste your six answers here, above the next line.
brought = ("MyBatchNorm", "MyDropout", "MyReLU", "inspect_model", "save_program", "load_program")
print("not here yet:", ", ".join(name for name in brought if name not in globals()) or "none")

# %% [markdown]
# A layer of yours is used when it is here and runs. Where it does not, torch's own stands in, and a line says so.


# %%
def own(name, stand_in, *sizes):
    try:
        globals()[name](*sizes)(torch.rand(2, 4))
    except (KeyError, NotImplementedError):
        print(f"{stand_in.__name__} stands in for {name}")
        return stand_in
    return globals()[name]


Layer, Norm = own("MyCustomLayer", nn.Linear, 4, 4), own("MyBatchNorm", nn.BatchNorm1d, 4)
Bend, Dropout = own("MyReLU", nn.ReLU), own("MyDropout", nn.Dropout, 0.2)

# %% [markdown]
# The network is short. Before you run the cell after it, count its parameters by hand: two layers of yours with weight,
# bias and a LayerNorm, one BatchNorm, one head.


# %%
class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Layer(64, 64), Norm(64), Bend(), Dropout(0.2), Layer(64, 32), Bend())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.body(x))


def share_right(model):
    with torch.no_grad():
        return (model.eval()(new_greys).argmax(1) == new_digits).float().mean().item()


# %% [markdown]
# 64 · 64 + 64 + 128 for the first layer, 128 for the BatchNorm, 64 · 32 + 32 + 64 for the second layer, 32 · 10 + 10 for
# the head: 6890 with your layer. Compare, and look at how many of 100 drawings the untrained network gets right: about
# one in ten, by luck.

# %%
torch.manual_seed(1)
model = DigitNet()
print("parameters:", sum(parameter.numel() for parameter in model.parameters()))
print("better than luck before training:", share_right(model) > 0.3)

# %% [markdown]
# ### Train
#
# Thirty epochs in batches of 50, with your clipping on the gradients. Everything in the loop is plain; the work is in
# the parts. Look at the two statements at the end: they are the goal.


# %%
def train(model, epochs=30):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(greys)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(greys[rows]), digits[rows]).backward()
            optimizer.step()


# %% [markdown]
# Now run it. Your `clip_gradients` hands back handles; they come off again when the training is over. One core does it
# (`torch.set_num_threads(1)`): with matrices this small, two cores spend their time waiting for each other.

# %%
try:
    handles = clip_gradients(model, 1.0)
except NotImplementedError:
    handles = []
torch.set_num_threads(1)
start = time.perf_counter()
train(model)
print("under a minute:", time.perf_counter() - start < 60)
print("more than 93 of 100 right:", share_right(model) > 0.93)
for handle in handles:
    handle.remove()

# %% [markdown]
# ### Inspect
#
# A good number is no proof of health. Put the network into your own inspector: one line a module, with its own count and
# the shapes that came out of it. Does the column add up to your 6890, and was everything called?

# %%
if "inspect_model" in globals():
    table = inspect_model(model, new_greys[:3])
    for row in table:
        print(f"{row['path']:12} {row['type']:14} {row['own']:6,}  {row['outputs']}")
    print("sum of the column:", sum(row["own"] for row in table))
    print("no call:", [row["path"] for row in table if not row["outputs"]])

# %% [markdown]
# And into the inspector of the course, which goes through the forward and the backward pass. Step to the end: has every
# parameter a gradient?

# %%
show(model, new_greys[:3], name="DigitNet")

# %% [markdown]
# Four questions that this course taught you to ask: is everything in the file, are the modes as they should be, is any
# hook left, and did every parameter learn? Each line should say what you expect.

# %%
parts = dict(model.named_modules())
print("keys in the file:", len(model.state_dict()))
print("in training mode:", [path for path, part in parts.items() if part.training])
print("hooks left:", sum(len(part._forward_hooks) + len(part._backward_hooks) for part in parts.values()))
print("without a gradient:", [name for name, parameter in model.named_parameters() if parameter.grad is None])

# %% [markdown]
# Your feature extractor looks inside. The 32 numbers before the head should bring drawings of the same digit together:
# for each new drawing, take the digit whose average features are nearest, and see whether that alone is a classifier.

# %%
try:
    features = extract_features(model, "body", greys.split(100))
    new_features = extract_features(model, "body", new_greys.split(100))
    centres = torch.stack([features[digits == digit].mean(0) for digit in range(10)])
    nearest = torch.cdist(new_features, centres).argmin(1)
    print(tuple(features.shape), "| nearest centre right:", (nearest == new_digits).float().mean().item() > 0.9)
except NotImplementedError as error:
    print(error, "is still to be written")

# %% [markdown]
# ### Export
#
# Out of Python: one program for any number of rows, in eval mode, written to a file and read back, with your two
# functions of chapter 8 or torch's own. It knows neither `DigitNet` nor your layers. Look at whether it answers like the
# model, for numbers of rows that it was not shown.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/digits.pt2"
    if "save_program" in globals() and "load_program" in globals():
        save_program(model, greys[:5], path)
        shipped = load_program(path)
    else:
        torch.export.save(export(model.eval(), (greys[:5],), dynamic_shapes={"x": {0: Dim.AUTO}}), path)
        shipped = torch.export.load(path).module()
model.eval()
for count in (1, 300):
    print(count, "rows, same answers:", torch.allclose(shipped(new_greys[:count]), model(new_greys[:count]), atol=1e-5))

# %% [markdown]
# ### Reload
#
# And the road back: the state alone, loaded into a new object of the class. Here the answers must be equal bit for bit.

# %%
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
reloaded = DigitNet()
print(reloaded.load_state_dict(torch.load(file)))
print("bit for bit:", torch.equal(reloaded.eval()(new_greys), model(new_greys)))

# %% [markdown]
# Trained with your parts, inspected with your tools, shipped without your code, and reloaded without a loss. If you
# want more: prune a fifth of the first layer's channels and see what accuracy remains; freeze the body and train the
# head alone on drawings with their colours inverted; hand the network to a classmate's `diagnose`.

# %% [markdown]
# ## A checklist for a module of your own
#
# - `super().__init__()` before the first assignment; every layer, parameter and buffer an attribute or in a container.
# - What is trained is an `nn.Parameter`; what is saved and moved is a buffer; what is neither is a constant.
# - An optional parameter is an empty slot, not a plain `None`.
# - `forward` asks `self.training`, creates new tensors on the device of its input, and writes over nothing it was given.
# - Buffers change in place, outside the graph.
# - It is called as `module(x)`, its state survives a round trip through a file, and a deep copy lives its own life.
# - A check of yours accepts a second right version of it, and rejects three wrong ones.
#
# A `forward` of your own is also where debugging gets simple: it is ordinary Python, you can stop in it and print.

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch09-containers")

# %% [markdown]
# The second is about the recipe of the first page, in other clothes.

# %%
quiz("ch09-clipping")

# %% [markdown]
# The third is about a head that is fine-tuned.

# %%
quiz("ch09-frozen")

# %% [markdown]
# The last one is about checks.

# %%
quiz("ch09-green")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | gradients are "clipped" and training explodes all the same | a hook that returns `grad_input`: it clips what flows on, not `.grad` |
# | clipped gradients exceed the limit when batches are accumulated | a hook that runs before the sum instead of after it |
# | `Tensor post accumulate grad hooks should return None` | a lambda whose expression returns something |
# | features without a single negative number | an alias that the next in-place layer wrote over: copy |
# | a frozen BatchNorm drifts after somebody extracted features | `train()` for the whole model at the end; remember each part's mode |
# | `Inference tensors cannot be saved for backward` | features made under `inference_mode` |
# | pruned channels come back | zero set once; momentum moves it: set it before each forward |
# | a quarter of the channels pruned where a fifth was asked for | a threshold at a quantile instead of a number |
# | a frozen layer moves for one step | a gradient from before; clear it when you freeze |
# | a frozen backbone's outputs change | its BatchNorm is in training mode |
# | a jump in the loss after the optimizer was rebuilt | its memory is gone, or was loaded by position |
# | a check is green and the code is wrong | inputs at which right and wrong agree |
#
# ## What to read next
#
# - `torch/nn/utils/prune.py` and `torch/nn/utils/parametrize.py`: two ways to keep a rule in force.
# - `torch/optim/optimizer.py`: `state_dict`, `load_state_dict` and `add_param_group`.
# - The exercises of this course under `autograder/exercises`: each is a probe, a reference and a zoo. You can read all of
#   them now, and the misconception that you would add is the best contribution to the course.
# - Then a model of your own, with the checklist beside you.
