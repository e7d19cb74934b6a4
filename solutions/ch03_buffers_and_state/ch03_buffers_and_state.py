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
# # Chapter 3 · Buffers and state
#
# A module holds more than what the optimizer trains. In this chapter you follow the rest: tensors that travel with
# the model, are written to its file, and change without a gradient. You then write BatchNorm and Dropout so that
# torch cannot tell yours from its own, and stop a training run so that it resumes bit for bit.
#
# Plan for about two and a half hours: one of reading and predicting, the rest for three exercises.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import io
import random

import torch
from torch import nn

from autograder import check, predict, quiz, recall
from simulations import BatchNormInternals

# %% [markdown]
# ## A model that forgets
#
# Somebody wrote a layer that learns the mean of its inputs, so that it can subtract it later. Training looks fine.
# Read the class and look at where the mean is kept.


# %%
class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(2)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return x - self.mean


# %% [markdown]
# Train it on rows around (10, 20), save what `state_dict()` gives, and load that into a fresh copy, as you would on
# the server. Look at the two answers to the same row.

# %%
layer = Centre()
rows = torch.tensor([[9.0, 19.0], [11.0, 21.0]])
for _ in range(4):
    layer(rows)
server = Centre()
print(server.load_state_dict(layer.state_dict()))
print("here:  ", layer.eval()(rows[:1]))
print("server:", server.eval()(rows[:1]))

# %% [markdown]
# Every key matched, and the answers differ. No error, no warning. The file is empty, and nothing was missing from
# it as far as torch knows. Look at the keys.

# %%
print(list(layer.state_dict()))

# %% [markdown]
# By the end of this chapter you will see this bug before it happens, and three of its relatives. First, three
# questions on what came before, because this chapter stands on it. Answer from memory; a wrong guess costs nothing.

# %%
recall("ch03")

# %% [markdown]
# ## Three homes for a tensor
#
# A tensor that is an attribute of a module lives in one of three places. This module has one of each. Before you
# run the next cell, decide what each question about it will answer.


# %%
class Homes(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained = nn.Parameter(torch.ones(2))
        self.register_buffer("kept", torch.ones(2))
        self.plain = torch.ones(2)


homes = Homes()

# %% [markdown]
# Three questions: who is trained, who is saved, who moves? Your prediction is about the last one, because it is the
# one that bites on another device.

# %%
predict("ch03-double")

# %% [markdown]
# The conversion to float64 stands in for a move to a GPU, which not every machine has: both go through the same
# code. Look at the three dtypes.

# %%
homes.double()
print("parameters():", [name for name, _ in homes.named_parameters()])
print("state_dict():", list(homes.state_dict()))
print("moved:", {name: getattr(homes, name).dtype for name in ("trained", "kept", "plain")})

# %% [markdown]
# A parameter is trained, saved and moved. A **buffer** is saved and moved, and never appears in `parameters()`. A
# plain tensor is none of these: the module does not know that it has one. The failure that follows is loud, but it
# appears far from its cause, in the first operation that mixes the two.

# %%
try:
    torch.ones(1, 2, dtype=torch.float64) @ homes.plain
except RuntimeError as error:
    print(type(error).__name__, "|", str(error).splitlines()[0])

# %% [markdown]
# ### Two ways to register, and what they refuse
#
# `register_buffer` takes a name and a tensor. `nn.Buffer` does the same by plain assignment. Both refuse a name that
# a plain attribute already has, which is how you find out that you assigned first and registered later.


# %%
class TwoWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(1))
        self.b = nn.Buffer(torch.zeros(1))
        self.taken = torch.zeros(1)


two = TwoWays()
print([name for name, _ in two.named_buffers()])
try:
    two.register_buffer("taken", torch.zeros(1))
except KeyError as error:
    print("KeyError |", error)

# %% [markdown]
# A buffer may be `None`: a slot that is kept open. It appears in `_buffers`, and in no file. Look at the two lists.

# %%
two.register_buffer("later", None)
print(list(two._buffers), list(two.state_dict()))

# %% [markdown]
# ### What `.to()` converts
#
# A counter is a buffer as well, and must stay an integer. Look at the dtypes after `.half()`: only floating tensors
# are converted.

# %%
counting = nn.Module()
counting.register_buffer("steps", torch.tensor(3))
counting.register_buffer("scale", torch.tensor(0.5))
print({name: buffer.dtype for name, buffer in counting.half().named_buffers()})

# %% [markdown]
# ### Persistent or not
#
# A mask that can be computed again should move with the model and stay out of its file. That is
# `persistent=False`. Predict what the file and a second assignment do with it.

# %%
predict("ch03-persistent-kept")

# %% [markdown]
# The module assigns a new tensor of another shape to the name of a non-persistent buffer. Look at whether the name
# is still a buffer, and whether it is in the file now.

# %%
masked = nn.Module()
masked.register_buffer("mask", torch.ones(3), persistent=False)
masked.mask = torch.ones(5)
print("buffers:", [(name, tuple(b.shape)) for name, b in masked.named_buffers()])
print("file:   ", list(masked.state_dict()))

# %% [markdown]
# The name stays a buffer and keeps its flag: assignment to a buffer's name is caught by `Module.__setattr__`, which you
# know from chapter 1. Only a fresh `nn.Buffer` brings a flag of its own. And a file that contains the mask anyway is
# refused, because the module does not expect it.

# %%
try:
    masked.load_state_dict({"mask": torch.ones(5)})
except RuntimeError as error:
    print(str(error).splitlines()[1].strip())
masked.mask = nn.Buffer(torch.ones(5))
print("file:", list(masked.state_dict()))

# %% [markdown]
# You need not take any of this on trust. Here are the lines of torch's own `register_buffer` that decide it, read from
# the copy that is installed on your machine. Which of them refuse, and which two store something?

# %%
source = inspect.getsource(nn.Module.register_buffer).splitlines()
wanted = ("raise", "_buffers[name]", "_non_persistent_buffers_set")
print("\n".join(line.strip() for line in source if any(word in line for word in wanted)))

# %% [markdown]
# ## BatchNorm's five tensors
#
# BatchNorm is the layer for which buffers were made. It shifts and scales each channel of a batch, and it has to
# remember the typical mean and variance for the day when a single row arrives. Look at what is a parameter and what
# is a buffer, and at the one dtype that differs.

# %%
bn = nn.BatchNorm1d(3)
print("parameters:", [name for name, _ in bn.named_parameters()])
for name, buffer in bn.named_buffers():
    print("buffer:", name, tuple(buffer.shape), buffer.dtype)

# %% [markdown]
# Two parameters, three buffers. The parameters move when the optimizer steps. The buffers move in `forward`, and only
# in training mode. Watch both happen: the simulation below runs a real `nn.BatchNorm1d` and records every step of
# it. Step through one training batch, then find the moment at which the mode changes, and see who stands still from
# then on.

# %%
BatchNormInternals()

# %% [markdown]
# ### Which variance goes where
#
# A batch has two variances: the sum of squared distances divided by n, called biased, and divided by n - 1, called
# unbiased. BatchNorm uses both. Take a column you can do by hand: 1, 2, 3, 6 has mean 3, squared distances
# 4, 1, 0, 9, so the variances are 14/4 = 3.5 and 14/3 = 4.67.

# %%
predict("ch03-running-var")

# %% [markdown]
# One training step with `momentum=0.1`, starting from mean 0 and variance 1. Look at `running_var`, and find out which
# of the two variances went into it: 0.9 · 1 + 0.1 · v.

# %%
column = torch.tensor([[1.0], [2.0], [3.0], [6.0]])
bn = nn.BatchNorm1d(1)
output = bn(column)
print("running_mean", round(bn.running_mean.item(), 4))
print("running_var ", round(bn.running_var.item(), 4))

# %% [markdown]
# 1.3667 is 0.9 + 0.4667: the unbiased one. The output was divided by the other. Compare it with both.

# %%
for unbiased in (False, True):
    by_hand = (column - 3.0) / (column.var(0, unbiased=unbiased) + bn.eps).sqrt()
    print("unbiased" if unbiased else "biased  ", torch.allclose(output, by_hand))

# %% [markdown]
# So the batch is normalised with the biased variance and remembered with the unbiased one. A layer that uses one
# variance for both is right in training, and a little wrong ever after.
#
# > **Two words that mislead**
# >
# > *Momentum* in an optimizer is the weight of the past. In BatchNorm it is the weight of the **new** batch:
# > `new = (1 - momentum) · old + momentum · batch`. If you come from a library where the same word is the share that
# > is kept, 0.9 there is 0.1 here.
# >
# > *Dropout's p* is the probability that a value is **dropped**. In some older code and papers it is the probability
# > that it is kept.
#
# `momentum=None` is something else again: the plain average of all batches so far. It is why the layer counts them.

# %%
bn = nn.BatchNorm1d(1, momentum=None)
for value in (0.0, 6.0, 12.0):
    bn(torch.tensor([[value - 1], [value + 1]]))
    print("batch mean", value, "| running_mean", bn.running_mean.item(), "| count", bn.num_batches_tracked.item())

# %% [markdown]
# The first batch weighs 1, the second 1/2, the third 1/3. Here are torch's lines for it. What does the counter do when
# `momentum` is a number?

# %%
source = inspect.getsource(nn.modules.batchnorm._BatchNorm.forward).splitlines()
first = next(number for number, line in enumerate(source) if "self.training and self.track_running_stats" in line)
print("\n".join(line[8:] for line in source[first : first + 9]))

# %% [markdown]
# Two more settings are worth a look. `momentum=0.0` freezes the statistics and still counts. And
# `track_running_stats=False` leaves the three buffers empty, so that eval mode has to use the batch.

# %%
frozen = nn.BatchNorm1d(1, momentum=0.0)
frozen(column)
print(frozen.running_mean, frozen.num_batches_tracked.item())
untracked = nn.BatchNorm1d(1, track_running_stats=False).eval()
print(untracked._buffers, "| mean of the eval output:", abs(untracked(column).mean().item()) < 1e-6)

# %% [markdown]
# One thing BatchNorm refuses: a training batch with a single value per channel has no variance. Note the type of the
# error; your layer will have to raise the same.

# %%
try:
    nn.BatchNorm1d(1)(column[:1])
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# ## Updating a buffer
#
# There are two ways to give a buffer a new value: change the tensor in place, or bind the name to a new tensor. Both
# leave it registered. They differ in who else notices. Predict before you run.

# %%
predict("ch03-rebinding")

# %% [markdown]
# A `state_dict()` is taken first and the buffer updated afterwards, in both ways. Look at what the dict shows.


# %%
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))


for how in ("rebinding", "in place"):
    counter = Counter()
    taken = counter.state_dict()
    if how == "rebinding":
        counter.n = counter.n + 1
    else:
        counter.n += 1
    print(how, "| module", counter.n.item(), "| dict taken before", taken["n"].item())

# %% [markdown]
# `nn.BatchNorm1d` updates in place, and so should you: everyone who holds the tensor sees the new value. Rebinding has a
# second danger when a gradient is near. Here the new value is computed from a tensor that requires one.

# %%
counter = Counter()
weight = torch.ones(1, requires_grad=True)
counter.n = 0.9 * counter.n + 0.1 * (weight * 5)
print("has a history:", counter.n.grad_fn is not None)
try:
    copy.deepcopy(counter)
except RuntimeError as error:
    print("RuntimeError |", str(error)[:56])

# %% [markdown]
# The buffer drags the graph of every step behind it: memory grows, copying fails, and a second `backward` through the
# old part raises. Put the update under `torch.no_grad()`, or detach what goes in. How would you find such a buffer in
# a model that somebody else wrote?
#
# The same care is needed with `torch.inference_mode()`: a buffer that is bound to a new tensor inside it can no longer
# be changed outside.

# %%
counter = Counter()
with torch.inference_mode():
    counter.n = counter.n + 1
try:
    counter.n += 1
except RuntimeError as error:
    print("RuntimeError |", str(error)[:54])

# %% [markdown]
# ## train() and eval()
#
# `train()` and `eval()` set one flag, `training`, on the module and on every registered child at that moment. That
# sentence has three limits. Predict which of the layers below follows `eval()`.

# %%
predict("ch03-eval-reaches")

# %% [markdown]
# One child in a plain list, one registered, one added afterwards. Look at the flags.

# %%
model = nn.Module()
model.hidden = [nn.Dropout()]
model.registered = nn.Dropout()
model.eval()
model.added_later = nn.Dropout()
print("list:", model.hidden[0].training)
print("registered:", model.registered.training)
print("added later:", model.added_later.training)

# %% [markdown]
# A flag is not a lock. Nobody sets it again for what comes later, and what is hidden in a list is never reached. Two
# things that `eval()` does not do are worth seeing once: it does not switch gradients off, and freezing the
# parameters does not freeze the statistics.

# %%
print("gradients in eval:", nn.Linear(1, 1).eval()(torch.ones(1, 1)).requires_grad)
bn = nn.BatchNorm1d(1).requires_grad_(False)
bn(torch.full((4, 1), 10.0))
print("frozen parameters, running_mean:", bn.running_mean.item())

# %% [markdown]
# For inference you want both: `model.eval()` and `torch.no_grad()`. For a backbone that must not change you want both
# as well: frozen parameters and eval mode.
#
# The statistics also count how often `forward` runs, not how often you step. Activation checkpointing runs a forward
# a second time during backward, to save memory. One step, and the counter says so:

# %%
from torch.utils.checkpoint import checkpoint

bn = nn.BatchNorm1d(2)
x = torch.ones(4, 2, requires_grad=True)
checkpoint(lambda rows: bn(rows).relu() * 2, x, use_reentrant=False).sum().backward()
print("batches counted in one step:", bn.num_batches_tracked.item())

# %% [markdown]
# You have now seen every decision that BatchNorm makes. Make them yourself.

# %% [markdown]
# {{card my_batchnorm}}


# %% nbgrader={"grade": false, "grade_id": "my_batchnorm", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyBatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        axes = [0] if x.dim() == 2 else [0, 2]
        shape = [1, -1, 1][: x.dim()]
        if self.training:
            if x.numel() == x.shape[1]:
                raise ValueError("a single value per channel has no variance")
            mean, var = x.mean(axes), x.var(axes, unbiased=False)
            with torch.no_grad():
                self.num_batches_tracked += 1
                share = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
                self.running_mean += share * (mean - self.running_mean)
                self.running_var += share * (x.var(axes, unbiased=True) - self.running_var)
        else:
            mean, var = self.running_mean, self.running_var
        normal = (x - mean.view(shape)) / (var.view(shape) + self.eps).sqrt()
        return normal * self.weight.view(shape) + self.bias.view(shape)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_batchnorm_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("my_batchnorm", MyBatchNorm)

# %% [markdown]
# {{hints my_batchnorm}}

# %% [markdown]
# ## Dropout
#
# Dropout is the other well-known layer that reads `training`; there are several more. It stores nothing at all. In
# training it sets each value to zero with probability p, and scales what is left. Predict by how much.

# %%
predict("ch03-dropout-scale")

# %% [markdown]
# Ten thousand ones, p = 0.75. Look at which values occur in the output, and at their mean.

# %%
torch.manual_seed(0)
output = nn.Dropout(0.75)(torch.ones(10_000))
print("values:", output.unique().tolist())
print("share dropped:", round((output == 0).float().mean().item(), 2), "| mean:", round(output.mean().item(), 1))

# %% [markdown]
# What stays is divided by 1 - p, here by a quarter, so that the expected sum is unchanged and eval mode has nothing to
# make up for: it returns its input, the very same object. With p = 0 training does so too.

# %%
x = torch.ones(3)
print(nn.Dropout(0.75).eval()(x) is x, nn.Dropout(0.0)(x) is x)

# %% [markdown]
# The ends deserve care. With p = 1 nothing stays, and dividing by 1 - p would divide zero by zero. Look at what torch
# returns and at what the plain rule would give.

# %%
print("nn.Dropout(1.0):", nn.Dropout(1.0)(torch.ones(2)).tolist())
print("plain rule:     ", (torch.ones(2) * torch.zeros(2) / (1 - 1.0)).tolist())
try:
    nn.Dropout(1.5)
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# One relative is a trap: the function `F.dropout` has a switch of its own, which is on unless you pass
# `training=self.training`. A model that calls it bare drops values in eval mode too.

# %%
dropped = nn.functional.dropout(torch.ones(1000))
print("F.dropout without its switch drops:", bool((dropped == 0).any()))

# %% [markdown]
# {{card my_dropout}}


# %% nbgrader={"grade": false, "grade_id": "my_dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        ### BEGIN SOLUTION
        if not 0 <= p <= 1:
            raise ValueError(f"p is a probability, and {p} is not between 0 and 1")
        self.p = p
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0
        keep = torch.empty_like(x).bernoulli_(1 - self.p)
        return x * keep / (1 - self.p)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_dropout_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_dropout", MyDropout)

# %% [markdown]
# {{hints my_dropout}}

# %% [markdown]
# ## A state_dict is a live view
#
# `state_dict()` looks like a photograph. It is a window. Predict what the dict shows after the model has changed.

# %%
predict("ch03-live-view")

# %% [markdown]
# Take the dict, then change the model; and change the dict, then look at the model.

# %%
bn = nn.BatchNorm1d(1)
live, frozen_copy = bn.state_dict(), copy.deepcopy(bn.state_dict())
with torch.no_grad():
    bn.weight.fill_(7.0)
print("live:", live["weight"].item(), "| deepcopy:", frozen_copy["weight"].item())
live["bias"].fill_(5.0)
print("the model's bias:", bn.bias.item())

# %% [markdown]
# The dict holds detached tensors that share their memory with the model: parameters first, then persistent buffers,
# then the children's. If you keep "the best weights so far", copy them, or they will follow the worst. A `deepcopy` of
# the whole module copies values and buffers too, but not the gradients. Look at the order of the keys and at `grad`.

# %%
print(list(live))
bn(column).sum().backward()
print("gradient copied:", copy.deepcopy(bn).weight.grad is not None)

# %% [markdown]
# A module may put something of its own into the dict. `get_extra_state` and `set_extra_state` carry plain data under one
# extra key. Look at its name.


# %%
class Remembers(nn.Module):
    calls = 0

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


old, new = Remembers(), Remembers()
old.calls = 9
new.load_state_dict(old.state_dict())
print(list(old.state_dict()), new.calls)

# %% [markdown]
# ## What a file holds
#
# `torch.save` writes a dict of tensors and plain values; `torch.load` reads it back. Since torch 2.6 it reads nothing
# else unless told: a file is data from somewhere, and unpickling can run code. A dict of state passes.


# %%
def round_trip(thing, **options):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, **options)


print(bn.load_state_dict(round_trip(bn.state_dict())))

# %% [markdown]
# Saving the module itself stores no code, only the names of its module and class, to be looked up when the file is
# opened. Rename the class and the file is lost; edit it and the file quietly means something else. Look at who refuses.

# %%
try:
    round_trip(bn)
except Exception as error:
    print(type(error).__name__, "|", str(error).split(".")[0])

# %% [markdown]
# A whole checkpoint needs no exception from that rule: the states of optimizers and schedulers, Python numbers and
# torch's random state all pass. What does not is NumPy, for instance a loss that was averaged there. Convert it with
# `float()` first.

# %%
import numpy as np

optimizer = torch.optim.AdamW(bn.parameters())
optimizer.step()
print(list(round_trip({"optimizer": optimizer.state_dict(), "loss": 0.5, "random": torch.get_rng_state()})))
try:
    round_trip({"loss": np.float64(0.5)})
except Exception as error:
    print(type(error).__name__)

# %% [markdown]
# Two options of `torch.load` complete it. `map_location` says where the tensors go, whatever device they came from. And
# `torch.serialization.safe_globals` allows single classes: allow as few as you can.

# %%
print(round_trip(bn.state_dict(), map_location="meta")["weight"].device)
with torch.serialization.safe_globals([np._core.multiarray.scalar, np.dtype, np.dtypes.Float64DType]):
    print(float(round_trip({"loss": np.float64(0.5)})["loss"]))

# %% [markdown]
# ### Loading into another architecture
#
# `strict=False` forgives keys that are missing or unexpected. It does not forgive shapes. Predict what is left in the
# target after the error.

# %%
predict("ch03-strict")

# %% [markdown]
# The first layer fits, the second does not. Look at the error, then at the first layer.

# %%
source_net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 5))
target = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
try:
    target.load_state_dict(source_net.state_dict(), strict=False)
except RuntimeError as error:
    print(str(error).splitlines()[1].strip()[:60])
print("first layer loaded:", torch.equal(target[0].weight, source_net[0].weight))

# %% [markdown]
# A failed load is not rolled back. Filter by name and shape before you load, and read what comes back: with a wrong
# prefix `strict=False` loads nothing and mentions it only in its return value.

# %%
own = target.state_dict()
fits = {name: t for name, t in source_net.state_dict().items() if name in own and t.shape == own[name].shape}
print(target.load_state_dict(fits, strict=False))
wrong = {f"module.{name}": t for name, t in own.items()}
print(len(target.load_state_dict(wrong, strict=False).missing_keys), "missing")

# %% [markdown]
# ## What a training run consists of
#
# To go on as if nothing had happened, a file needs everything that the next step reads. Model and optimizer come to
# mind first. Look at what AdamW remembers for one parameter, and what a schedule counts: `StepLR`, which multiplies the
# learning rate by 0.1 after every `step_size` epochs.

# %%
model = nn.Linear(1, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
model(torch.ones(1, 1)).sum().backward()
optimizer.step()
scheduler.step()
print(sorted(optimizer.state_dict()["state"][0]))
print("epochs counted:", scheduler.state_dict()["last_epoch"])

# %% [markdown]
# A fresh optimizer starts with empty moments, and a fresh schedule at zero. The run would go on, and be another one.
# Note also that the optimizer's state is keyed by position, 0, 1, 2, and not by name: give it the parameters in the
# same order when you resume.
#
# ## Random states
#
# Dropout, shuffling and augmentation draw from generators, and each has a state of its own. A file can hold it. Predict
# whether loading such a file is enough.

# %%
predict("ch03-random-state")

# %% [markdown]
# `torch.get_rng_state()` gives the CPU generator's state as a tensor, and `torch.set_rng_state` takes one. The state is
# saved, the next number noted, and the file opened in what stands for a new process. Look at which of the two numbers
# equals the noted one.

# %%
torch.manual_seed(0)
saved = {"random": torch.get_rng_state()}
wanted = torch.rand(1)
torch.manual_seed(123)
loaded = round_trip(saved)
print("after loading:", torch.equal(torch.rand(1), wanted))
torch.set_rng_state(loaded["random"])
print("after set_rng_state:", torch.equal(torch.rand(1), wanted))

# %% [markdown]
# Loading hands you the state; handing it back is your part. Python's `random` has `getstate` and `setstate`, and its
# state passes `torch.load` as it is. On GPUs there is one state a device: `torch.cuda.get_rng_state_all()` lists them and
# `torch.cuda.set_rng_state_all` takes such a list; `torch.cuda.device_count()` says how many there are, and with none the
# list is simply empty.

# %%
state = round_trip(random.getstate())
first_number = random.random()
random.setstate(state)
print("Python's stream goes on:", random.random() == first_number)
print("GPU states:", len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count())

# %% [markdown]
# {{card save_and_resume}}


# %% nbgrader={"grade": false, "grade_id": "save_and_resume", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save_checkpoint(path, model, optimizer, scheduler, epoch):
    ### BEGIN SOLUTION
    checkpoint_now = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
        "torch_random": torch.get_rng_state(),
        "cuda_random": torch.cuda.get_rng_state_all(),
        "python_random": random.getstate(),
    }
    torch.save(checkpoint_now, path)
    ### END SOLUTION


def load_checkpoint(path, model, optimizer, scheduler):
    ### BEGIN SOLUTION
    found = torch.load(path, map_location="cpu")
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    scheduler.load_state_dict(found["scheduler"])
    torch.set_rng_state(found["torch_random"])
    torch.cuda.set_rng_state_all(found["cuda_random"])
    random.setstate(found["python_random"])
    return found["epoch"] + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "save_and_resume_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("save_and_resume", save_checkpoint, load_checkpoint)

# %% [markdown]
# {{hints save_and_resume}}

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch03-persistent")

# %% [markdown]
# The second is about the layer you wrote first.

# %%
quiz("ch03-eval-batch")

# %% [markdown]
# The third is about keeping the best weights.

# %%
quiz("ch03-best-weights")

# %% [markdown]
# The last one is the bug of the first page, in other clothes.

# %%
quiz("ch03-plain-tensor")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | good in training, odd after reload; every key matched | a plain tensor that should be a buffer: compare `state_dict()` with the attributes |
# | error about two dtypes or devices deep inside `forward` | a plain tensor that did not move with the model |
# | good in training mode, poor in eval mode | running statistics: too few batches, `momentum` misread, a frozen backbone left in training mode |
# | eval results change from call to call | a module that `eval()` does not reach, or a bare `F.dropout` |
# | memory grows with every step | a buffer with a `grad_fn` |
# | `deepcopy` complains about graph leaves | the same buffer |
# | "the best weights" equal the last ones | a `state_dict()` that was kept without a copy |
# | half-loaded model after an error | a load that stopped at a shape; it is not rolled back |
# | a resumed run drifts from the original | optimizer, scheduler or one of the random states missing from the file |
# | `Unexpected key(s)` for a mask | a file written when the buffer was persistent |
#
# ## What to read next
#
# - `torch/nn/modules/batchnorm.py`: `_NormBase` and `_BatchNorm.forward` are short, and you have now written them.
# - `torch/nn/modules/module.py`: `register_buffer`, then the buffer branch of `__setattr__`.
# - torch's notes on serialization semantics, for what `torch.load` allows and why.
# - Chapter 4, where hooks let you watch a layer from outside, statistics included.
