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
# # Chapter 0 · Why internals
#
# You can build networks for years without asking what `nn.Module` does for you. Then a model learns a little, not
# enough, and nothing is wrong with the mathematics. In this chapter you meet that bug, see why torch says nothing
# about it, mend it, and write the tool that finds it in any model.
#
# Plan for about an hour and three quarters: one hour of reading and predicting, the rest for two exercises. You need
# Python classes and an idea of what a tensor and a gradient are.
#
# The first cell loads what you need. Run it now.

# %%
import inspect

import torch
from torch import nn

from autograder import check, predict, quiz
from simulations import RegistrationProblem

# %% [markdown]
# ## A loss that falls
#
# Somebody wants a small network to learn the absolute value: 1 for -1, 2 for -2, a valley with its lowest point at 0.
# The class takes its two hidden layers in a container of your choice. Read it, and look at where they are kept.


# %%
class Valley(nn.Module):
    def __init__(self, container):
        super().__init__()
        self.hidden = container([nn.Linear(1, 4), nn.Linear(4, 4)])
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.head(x)


# %% [markdown]
# A training loop like thousands of others: predict, measure, clear, backward, step. It returns the loss of every
# step. Look at its first lines, which ask the model for its parameters.

# %%
x = torch.linspace(-2, 2, 40).unsqueeze(1)


def train(model, steps=200):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = (model(x) - x.abs()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
# The model is built with a plain Python list and trained. Look at the first loss and the last.

# %%
torch.manual_seed(1)
model = Valley(list)
layers = {"hidden 0": model.hidden[0], "hidden 1": model.hidden[1], "head": model.head}
before = {name: layer.weight.clone() for name, layer in layers.items()}
losses = train(model)
print(f"first loss {losses[0]:.2f}, last loss {losses[-1]:.2f}")

# %% [markdown]
# The loss fell to a third. No error, no warning: so it must be the learning rate, or the data, or too few layers?
# Before you spend the afternoon on these, look at which of the three layers moved at all, and which have a gradient.

# %%
for name, layer in layers.items():
    moved = not torch.equal(before[name], layer.weight)
    print(f"{name:8} | moved: {moved!s:5} | has a gradient: {layer.weight.grad is not None}")

# %% [markdown]
# Two hundred steps, and the hidden layers are as they were on the first day. Only the head has learned, on top of
# random features, and that was enough to make the loss fall. Change one word, the container, and look again.

# %%
torch.manual_seed(1)
mended = Valley(nn.ModuleList)
losses = train(mended)
print(f"first loss {losses[0]:.2f}, last loss {losses[-1]:.2f}")

# %% [markdown]
# Same seed, same first loss, and now the valley is learned. There are two kinds of trouble in this field: mathematics,
# such as gradients that vanish, and bookkeeping, such as a layer that nobody knows about. The second kind looks
# like the first from outside. This course is about the bookkeeping.
#
# ## What a plain list costs
#
# The model was asked for its parameters and left some out. Count what it should have: the hidden layers hold
# 1·4 + 4 and 4·4 + 4 numbers, the head 4 + 1. That makes 8, 20 and 5. Predict what it answers.

# %%
predict("ch00-counted")

# %% [markdown]
# Count with torch. Look at the names as well: a name is there, or the optimizer never hears of it.

# %%
model = Valley(list)
print(sum(parameter.numel() for parameter in model.parameters()))
print([name for name, _ in model.named_parameters()])

# %% [markdown]
# `parameters()` is not the only walk that passes the list by. The next cell asks the model for four more things that
# you may have used: convert to float64, switch to evaluation, freeze, save. (The first three return the model, so that
# you can write them in a row.) `state_dict()` is the dict that a file is made of. Look at what has reached the first
# hidden layer.

# %%
model.double().eval().requires_grad_(False)
layer = model.hidden[0]
print("converted:", layer.weight.dtype)
print("switched: ", "training mode" if layer.training else "evaluation mode")
print("frozen:   ", not layer.weight.requires_grad)
print("saved:    ", list(model.state_dict()))

# %% [markdown]
# None of it arrived. The conversion stands in for a move to a GPU, which goes through the same code: a layer that was
# not moved stays behind. That one becomes loud, at the first operation where the two halves meet. Look at the error,
# and at how little it says about a list.

# %%
try:
    model(x.double())
except RuntimeError as error:
    print(type(error).__name__, "|", str(error).splitlines()[0])

# %% [markdown]
# The cheapest look at all of this is `print`. It shows the modules that torch knows, and nothing else. Compare the two
# models, and find what the first one leaves out.

# %%
print(Valley(list))
print(mended)

# %% [markdown]
# Now the whole story in one figure, recorded from real torch: a model is built, trained for three steps and saved, once
# with its layers in a list and once in `nn.ModuleList`. Step through the list first. Every gradient is filled, and look
# which of them the optimizer then moves.

# %%
RegistrationProblem()

# %% [markdown]
# So a layer in a plain list is not in `parameters()`, not saved, not moved or converted, not switched by `eval()`, not
# frozen and not printed. Six consequences of one cause: it is not **registered**. A thing that a module holds and does
# not know of we shall call an **orphan**.
#
# ## Loud and silent failures
#
# You will read that a model without any registered parameter trains on with a flat loss. Here is such a model:
# every layer in a list, no head. Predict what happens when you give its parameters to an optimizer.

# %%
predict("ch00-loud")

# %% [markdown]
# The model computes: `forward` walks over the list itself and needs nobody's help. Look at what comes after.


# %%
class AllHidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 1)]

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


print(AllHidden()(torch.ones(1, 2)).shape, list(AllHidden().parameters()))
try:
    torch.optim.SGD(AllHidden().parameters(), lr=0.1)
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# Loud, at once, and before the first step. You need not take it on trust: here are the lines of torch's own optimizer
# class that decide it, read from the copy installed on your machine. Which list is measured, and what could you pass
# that is not empty and yet holds nothing?

# %%
source = inspect.getsource(torch.optim.Optimizer.__init__).splitlines()
place = next(number for number, line in enumerate(source) if "empty parameter list" in line)
print("\n".join(line.strip() for line in source[place - 2 : place + 3]))

# %% [markdown]
# Only the outer list is measured. A group, which is a dict with options of its own, may hold an empty list. And nobody
# asks whether the parameters want to be trained. Look at which of the three attempts is refused.

# %%
frozen = nn.Linear(2, 2).requires_grad_(False)
attempts = {
    "group without parameters": [{"params": []}],
    "frozen parameters": frozen.parameters(),
    "frozen ones filtered out": [p for p in frozen.parameters() if p.requires_grad],
}
for name, parameters in attempts.items():
    try:
        torch.optim.SGD(parameters, lr=0.1)
        print(name, "| accepted")
    except ValueError as error:
        print(name, "| ValueError:", error)

# %% [markdown]
# That gives you three silent cases to remember. A **partly registered** model, like the valley: something is in the
# list, so nothing is refused. A **group dict** whose list is empty. And parameters that are all **frozen**. Silence
# needs company: the bug hides behind the part that works.
#
# ## Gradients that nobody uses
#
# Another sentence you will read: the gradients of hidden layers are `None`. You have seen that they are not. Follow one
# by hand. `nn.init.constant_` fills a hidden weight with 2 and a head weight with 3; with the input 1, the output
# 2 · 3 = 6 is the loss itself.
#
# The gradient of a product is the other factor: 3 for the hidden weight, 2 for the head. With a learning rate of 0.1
# the head goes from 3 to 2.8.


# %%
class TwoWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(1, 1, bias=False)]
        self.head = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.hidden[0].weight, 2.0)
        nn.init.constant_(self.head.weight, 3.0)

    def forward(self, x):
        return self.head(self.hidden[0](x))


# %% [markdown]
# Now two steps, each with `zero_grad()` first, as in every loop. In the second step the head's weight is 2.8. Predict
# the hidden layer's gradient after both.

# %%
predict("ch00-second-gradient")

# %% [markdown]
# Look at the gradient of the hidden weight in both lines, and at the weight itself.

# %%
model = TwoWeights()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in (1, 2):
    optimizer.zero_grad()
    model(torch.ones(1, 1)).backward()
    optimizer.step()
    hidden = model.hidden[0].weight
    print(f"step {step}: hidden {hidden.item():.1f}, its gradient {hidden.grad.item():.1f}", end=", ")
    print(f"head {model.head.weight.item():.1f}")

# %% [markdown]
# 3, then 3 + 2.8 = 5.8. The gradient is computed each time, added to what is there, and never used and never cleared,
# because `zero_grad()` takes the same walk as `step()`: over the list that the optimizer was given. A gradient that
# only grows is a good fingerprint of an orphan.
#
# Computing gradients is autograd's work, and autograd does not ask who is registered. It looks at one thing: does the
# tensor want a gradient? So a plain tensor gets one too. Look at who is listed, and then at what a step can do to a
# tensor that you hand over yourself.


# %%
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.listed = nn.Parameter(torch.ones(1))
        self.plain = torch.ones(1, requires_grad=True)


model = Scaled()
(3 * model.listed * model.plain).sum().backward()
print([name for name, _ in model.named_parameters()])
print("gradients:", model.listed.grad.item(), model.plain.grad.item())
torch.optim.SGD([model.plain], lr=0.1).step()
print(f"plain, one step later: {model.plain.item():.1f}")

# %% [markdown]
# Both have the gradient 3, and the plain tensor can be trained by anyone who holds it. `requires_grad=True` is a matter
# between tensor and autograd. An **`nn.Parameter`** is a tensor that a module registers when you assign it, and that is
# how `parameters()`, and through it the optimizer, comes to know of it. Chapter 2 is about that difference.
#
# ## The list that works
#
# There is a well-known small library, micrograd, whose network keeps its layers in a plain list, and it trains. Here is
# the same idea with torch's layers, in a class that inherits from nothing. Look at how it answers `parameters()`.


# %%
class ByHand:
    def __init__(self):
        self.layers = [nn.Linear(1, 8), nn.Linear(8, 1)]

    def __call__(self, x):
        return self.layers[1](torch.tanh(self.layers[0](x)))

    def parameters(self):
        return [parameter for layer in self.layers for parameter in layer.parameters()]


torch.manual_seed(0)
losses = train(ByHand())
print(f"first loss {losses[0]:.2f}, last loss {losses[-1]:.2f}")

# %% [markdown]
# It works, because somebody wrote down where the parameters are. A list is no evil; the question is who keeps the
# books. In this class you do: for `parameters()`, and again for saving, moving, freezing and switching modes, and each
# time you add a layer. For a small experiment, or a few plain functions, that is a fair choice.
#
# Could you have both, a plain list in an `nn.Module`, and `parameters()` written by hand? Predict what is saved.

# %%
predict("ch00-by-hand")

# %% [markdown]
# The valley once more, with its list, and with a method that tells the truth. Look at the count, then at the file.


# %%
class HandWritten(Valley):
    def parameters(self, recurse=True):
        for layer in (*self.hidden, self.head):
            yield from layer.parameters()


model = HandWritten(list)
print("numbers:", sum(parameter.numel() for parameter in model.parameters()))
print("saved:  ", list(model.state_dict()))

# %% [markdown]
# All 33 numbers would be trained, and five of them saved. The reason stands in torch's source: few methods ask
# `parameters()`, the others take walks of their own. `_apply` is behind `double()` and `to()`, `train` behind `eval()`.
# Look at who asks.

# %%
for name in ("zero_grad", "requires_grad_", "state_dict", "named_parameters", "_apply", "train"):
    asks = "self.parameters(" in inspect.getsource(getattr(nn.Module, name))
    print(f"{name:16}", "asks parameters()" if asks else "walks by itself")

# %% [markdown]
# And the other half, a class that neither inherits from `nn.Module` nor writes `parameters()`? It does not return an
# empty list. It says plainly that there is no such thing:


# %%
class Forgotten:
    def __init__(self):
        self.layer = nn.Linear(1, 1)


try:
    Forgotten().parameters()
except AttributeError as error:
    print("AttributeError |", error)

# %% [markdown]
# ## What nn.Module watches
#
# How does a module come to know of a layer, if you never wrote it down? It watches assignments. In Python every
# `self.name = value` calls a method, `__setattr__`, and `nn.Module` has one of its own. It looks at the value's type.
# Here are its tests on the value, and the last line, where everything else ends. Which of them would a list pass?

# %%
source = inspect.getsource(nn.Module.__setattr__).splitlines()
wanted = ("if isinstance(value", "super().__setattr__")
print("\n".join(line.strip() for line in source if any(word in line for word in wanted)))

# %% [markdown]
# A `Parameter` is registered, a `Module` is registered, and for buffers, which chapter 3 opens, there is a third way:
# the two lines with `Buffer`. A list is none of these. It goes to the last line, which is what any Python object does
# with an attribute: it is kept, and nobody looks inside. Hooks, of which you may have heard, have their own methods; no
# assignment makes one.
#
# Six ways to have a weight follow. Predict whose names will be listed.

# %%
predict("ch00-six-ways")

# %% [markdown]
# Look at the list of names, and tick off the six.


# %%
class SixWays(nn.Module):
    on_the_class = nn.Linear(1, 1)

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.in_a_list = [nn.Linear(1, 1)]
        self.parameter = nn.Parameter(torch.ones(1))
        self.tensor = torch.ones(1, requires_grad=True)
        local = nn.Linear(1, 1)  # noqa: F841 - the sixth way is a local variable


six = SixWays()
print([name for name, _ in six.named_parameters()])

# %% [markdown]
# Two of six: the parameter, and the layer with its two. The list and the tensor have no type that is watched. The layer
# on the class was assigned to the class, before there was an object to watch. The local variable was never assigned to
# anything that lasts, and this one is loud as soon as `forward` wants it:

# %%
try:
    six.local
except AttributeError as error:
    print("AttributeError |", error)

# %% [markdown]
# What is registered is listed once, whether frozen or not. Give one layer a second name, freeze it, and leave the bias
# out of another: its place is kept as `None` and skipped. Look at which names come.

# %%
once = nn.Module()
once.layer = nn.Linear(1, 1).requires_grad_(False)
once.again = once.layer
once.no_bias = nn.Linear(1, 1, bias=False)
print([name for name, _ in once.named_parameters()])

# %% [markdown]
# And one thing a module does not know: the order in which its parts run. It manages them; your `forward` alone knows
# the way of the data. (`nn.Sequential` is the exception, because it brings its `forward` along.)
#
# ### The fix
#
# torch has containers that are modules themselves. `nn.ModuleList` is used like a list and registers what it holds;
# `nn.ModuleDict` is used like a dict. For a tensor there is `nn.Parameter`. Three layers of 10 · 10 + 10 = 110 numbers:

# %%
fixed = nn.Module()
fixed.layers = nn.ModuleList([nn.Linear(10, 10) for _ in range(3)])
print(sum(parameter.numel() for parameter in fixed.parameters()))
print([name for name, _ in fixed.named_parameters()][:3])

# %% [markdown]
# In a name, the dots lead down the tree: attribute `layers`, its child `0`, that one's `weight`. A `ModuleDict` has its
# keys in that place. It is used as you would expect; look at the names and at the item.

# %%
heads = nn.ModuleDict({"up": nn.Linear(1, 1, bias=False), "down": nn.Linear(1, 1, bias=False)})
print([name for name, _ in heads.named_parameters()])
print(heads["up"], [name for name, _ in heads.items()])

# %% [markdown]
# Now mend a model. This one has a layer that torch sees, so it is of the silent kind. Find what is hidden before you
# change anything.


# %%
class BrokenModel(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]
        self.scale = torch.ones(width, requires_grad=True)
        self.heads = {"price": nn.Linear(width, 1), "kind": nn.Linear(width, 3)}

    def forward(self, x):
        x = torch.relu(self.entry(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = x * self.scale
        return {name: head(x) for name, head in self.heads.items()}


# %% [markdown]
# {{card fix_registration}}


# %% nbgrader={"grade": false, "grade_id": "fix_registration", "locked": false, "schema_version": 3, "solution": true, "task": false}
class FixedModel(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        ### BEGIN SOLUTION
        self.entry = nn.Linear(features, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.scale = nn.Parameter(torch.ones(width))
        self.heads = nn.ModuleDict({"price": nn.Linear(width, 1), "kind": nn.Linear(width, 3)})
        ### END SOLUTION

    def forward(self, x):
        x = torch.relu(self.entry(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = x * self.scale
        return {name: head(x) for name, head in self.heads.items()}


# %% nbgrader={"grade": true, "grade_id": "fix_registration_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("fix_registration", FixedModel)

# %% [markdown]
# {{hints fix_registration}}

# %% [markdown]
# ## Looking for what is missing
#
# In twelve lines you find an orphan by reading. In a model of two thousand you want a tool, and you are about to write
# it. It needs two lists, what torch reaches and what the objects really hold, and reports what is only in the second.
#
# The first is a walk that torch offers. `named_modules()` goes through the registered tree and gives a dotted path for
# each module, starting with the root, whose path is empty. Look at the paths of a model with a block inside.


# %%
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.extra = [nn.Linear(1, 1)]


tower = nn.Module()
tower.block = Block()
print([path for path, _ in tower.named_modules()])

# %% [markdown]
# The second list comes from Python. `vars(thing)` is the dict in which an object keeps its attributes, and a list ends
# there like every plain value. Torch's own books stand there as well, `_parameters` and `_modules` among them, so look
# at what a block has beyond an empty module.

# %%
own = vars(nn.Module())
print({name: value for name, value in vars(tower.block).items() if name not in own})
print([name for name in vars(tower) if name not in own])

# %% [markdown]
# `layer` is not there: what was registered is kept in torch's books instead. And the orphan stands in the `vars` of the
# block, not in those of the tower. To find all, you have to look at every registered module. (Shall your tool open
# torch's books too? It may: whatever stands in them is registered, and the next question sets that aside. Buffers stand
# there as well; `named_buffers()` lists them.)
#
# ### Held twice, or held in secret?
#
# Not everything in a list is an orphan. A model may register two layers and keep a list of them besides, to remember
# an order. Predict how many of its layers are missing from `parameters()`.

# %%
predict("ch00-held-twice")

# %% [markdown]
# Names cannot answer this, objects can. `id(thing)` is a number that belongs to one object as long as it lives; two
# names with the same `id` mean the same thing. Look at the count, and at the question to each item of the list.

# %%
twice = nn.Module()
twice.first, twice.second = nn.Linear(1, 1), nn.Linear(1, 1)
twice.order = [twice.second, twice.first]
registered = {id(part) for part in twice.modules()}
print(len(list(twice.parameters())), "parameters")
print([id(item) in registered for item in twice.order])

# %% [markdown]
# The same goes for a child that keeps its parent in a list, so that torch does not walk in circles: the root is in
# `modules()` too, so it is known. (For tensors use `id` as well: `==` compares their values, one by one.)
#
# ### A weight or a result?
#
# A module may keep other tensors: a table of constants, or the output of its last call, to look at later. Neither is a
# weight. Two flags tell: a weight wants a gradient, and it is a **leaf**, a tensor that was made and not computed.

# %%
weight = torch.ones(2, requires_grad=True)
tensors = {"weight": weight, "constant": torch.ones(2), "result": 3 * weight}
for name, tensor in tensors.items():
    print(f"{name:9} requires_grad {tensor.requires_grad!s:6} is_leaf {tensor.is_leaf}")

# %% [markdown]
# Each flag alone is true of something else. One exception to remember: an `nn.Parameter` that somebody froze is still
# a weight, and still belongs in the file.
#
# ### A function that calls itself
#
# Lists stand in lists, in dicts, in tuples. You cannot write a loop for every depth, but you can write a function that
# calls itself for each item, with a longer path. Here it looks for words in a nest of lists; look at the path it has
# built when it arrives.


# %%
def show_words(value, path):
    if isinstance(value, str):
        print(path, "=", value)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            show_words(item, f"{path}.{number}")


show_words(["oak", ["elm", ["ash"]]], "trees")

# %% [markdown]
# You have all the parts: who is registered, who is held, what counts, and how to look inside. When yours is done, try
# it on `BrokenModel(2, 3, 2)` and on a model of your own.

# %% [markdown]
# {{card find_orphans}}


# %% nbgrader={"grade": false, "grade_id": "find_orphans", "locked": false, "schema_version": 3, "solution": true, "task": false}
def find_orphans(module):
    ### BEGIN SOLUTION
    known = {id(part) for part in module.modules()}
    known |= {id(tensor) for _, tensor in (*module.named_parameters(), *module.named_buffers())}
    found = []

    def look(value, path):
        if id(value) in known:
            return
        is_weight = isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad
        if isinstance(value, (nn.Module, nn.Parameter)) or is_weight:
            found.append(path)
        elif isinstance(value, dict):
            for key, item in value.items():
                look(item, f"{path}.{key}")
        elif isinstance(value, (list, tuple)):
            for position, item in enumerate(value):
                look(item, f"{path}.{position}")

    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            look(value, f"{prefix}.{name}" if prefix else name)
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "find_orphans_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("find_orphans", find_orphans)

# %% [markdown]
# {{hints find_orphans}}

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too. The first is the one that this
# chapter began with.

# %%
quiz("ch00-why-empty")

# %% [markdown]
# The second asks which mistakes you will hear of, and which you will have to look for.

# %%
quiz("ch00-which-is-silent")

# %% [markdown]
# The third is about a mending that mends half.

# %%
quiz("ch00-override")

# %% [markdown]
# The last is a sentence from a forum. What would you have replied?

# %%
quiz("ch00-forum")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | the loss falls and stops far too high | compare a weight of every layer before and after some steps: which never moves? |
# | `optimizer got an empty parameter list` | nothing is registered, or a filter left nothing over: list, dict, tuple, class attribute, local variable |
# | training runs, no weight moves, no error | a group dict with an empty list, or parameters that are all frozen |
# | a gradient that only grows, `zero_grad()` or not | a layer or tensor that the optimizer never heard of |
# | a gradient is there and the tensor stands still | a plain tensor instead of an `nn.Parameter` |
# | error about two dtypes or devices within one model | a part that `double()` or `to()` did not reach |
# | the layer is missing from `print(model)` | the same cause, and the cheapest way to see it |
# | the file is smaller than the model | a list, or a `parameters()` written by hand |
# | `object has no attribute 'parameters'` | the class does not inherit from `nn.Module` |
# | `object has no attribute 'local'` inside `forward` | `self.` is missing in `__init__` |
#
# ## The symptom index of the course
#
# The same kind of table stands at the end of every chapter. This is the way in: find what you see, and go to the
# chapter that explains it.
#
# | what you see | chapter |
# |---|---|
# | the optimizer gets too few parameters, or none | 0, this one |
# | `cannot assign module before Module.__init__() call`; an attribute vanishes or turns up in another place | 1 |
# | `cannot assign ... as parameter`; a weight counted twice; a shared weight that is no longer shared | 2 |
# | right in training, odd after loading or in evaluation mode; a resumed run that drifts | 3 |
# | you need to see or change what flows through a layer; `nan` from an unknown place | 4 |
# | `model(x)` and `model.forward(x)` do not do the same | 5 |
# | layers from a loop, named heads, skip connections; keys of a file that changed their numbers | 6 |
# | you cannot tell what a model of somebody else holds, in which shapes | 7 |
# | right in Python, wrong or refused after `torch.export` | 8 |
# | several of these at once, in one sick model | 9 |
#
# Other courses end at TorchScript. It is deprecated, so chapter 8 shows it as history and goes on to `torch.export`.
#
# ## What to read next
#
# - `torch/optim/optimizer.py`: the beginning of `Optimizer.__init__` and `add_param_group`, for what is checked and what
#   is not.
# - micrograd's `nn.py`, about sixty lines: a base class and three more, each with its own `parameters()`.
# - Chapter 1, which opens the module: where a registered layer is kept, and how `self.layer` finds it again.
