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
# # Chapter 2 · Parameter registration
#
# Two tensors hold the same numbers. One of them is trained, saved and moved with the model, the other is not. In this
# chapter you find out what makes the difference, who asks about it, and what happens when a parameter is replaced,
# shared or forgotten. You then write the walk behind `named_parameters()`, count a model without counting a tied
# weight twice, and build a linear layer that torch cannot tell from its own.
#
# Plan for about two and a half hours: one and a half of reading and predicting, one for three exercises.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import math
import warnings

import torch
from torch import nn

from autograder import check, predict, quiz, recall
from simulations import ParameterOrTensor

# %% [markdown]
# ## A weight that will not learn
#
# Somebody wants to start from a weight of 2 instead of a random one, and trains a model with a single number. The
# target is 6. Read the four lines before the loop and say which of them you would question.

# %%
model = nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.weight = nn.Parameter(torch.tensor([[2.0]]))
x, target = torch.ones(1, 1), torch.tensor([[6.0]])
for step in range(3):
    loss = (model(x) - target).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), "| weight", model.weight.item(), "| gradient", model.weight.grad.item())

# %% [markdown]
# No error and no progress. Everything that one checks first looks right. Look at what the model says about itself.

# %%
print("registered:", [name for name, _ in model.named_parameters()])
print("requires a gradient:", model.weight.requires_grad)
print("in the file:", list(model.state_dict()))

# %% [markdown]
# The one odd sign is the gradient. That of (w - 6)² is 2 · (2 - 6) = -8, in every step, as the weight stands still. Yet
# -8 is added each time, as if `zero_grad()` did nothing either. Near the end of this chapter you will read off the
# cause in one line. First, three questions on what came before. Answer from memory; a wrong guess costs nothing.

# %%
recall("ch02")

# %% [markdown]
# ## Parameter or tensor
#
# The smallest module that shows the difference has one of each. Before you run anything, decide who will be able to
# see `scale`: the optimizer, the file, a move to another device, autograd?


# %%
class Demo(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.scale = torch.ones(2)


demo = Demo()

# %% [markdown]
# Your prediction is about a conversion to float64. It stands in for a move to a GPU, which not every machine has: both
# go through the same code.

# %%
predict("ch02-demo")

# %% [markdown]
# One line for each of three who might ask. Look at which of them ever mentions `scale`.

# %%
demo.double()
print("parameters():", [name for name, _ in demo.named_parameters()])
print("state_dict():", list(demo.state_dict()))
print("dtypes:", demo.weight.dtype, demo.scale.dtype)

# %% [markdown]
# None of the three. `scale` is in `demo.__dict__`, like a number or a string, and everything that a module does for
# its tensors begins with a walk over its registries.
#
# Ask the same of more tensors. One module holds the number 2 in four ways, and every cell of the grid is what torch
# answered. Before each step, say for yourself which of the four will be a yes.

# %%
ParameterOrTensor()

# %% [markdown]
# Autograd is the one who does not ask. It looks at `requires_grad` and at nothing else, so an unregistered tensor can
# have a gradient, and can even be trained when you hand it to the optimizer yourself. Look at both gradients, then at
# the tensor after the step.

# %%
weight = nn.Parameter(torch.ones(2))
plain = torch.ones(2, requires_grad=True)
(3 * weight * plain).sum().backward()
print("gradients:", weight.grad.tolist(), plain.grad.tolist())
torch.optim.SGD([plain], lr=1.0).step()
print("plain after a step:", plain.tolist())

# %% [markdown]
# So keep two questions apart. **Who gets a gradient?** Whatever has `requires_grad=True` and takes part in the
# computation. **Who is found?** Whatever is registered. To be trained, a tensor needs a gradient and an optimizer that
# was given it; being found is the usual way to be given.
#
# ### Who registers whom
#
# A parameter does not register itself. `nn.Parameter` is a small subclass of `Tensor` that knows nothing of modules; it
# is the *module* that looks at what you assign. The same parameter as an attribute of an ordinary object, and of a
# module: look at where it lands.


# %%
class Ordinary:
    pass


for holder in (Ordinary(), nn.Module()):
    holder.w = nn.Parameter(torch.ones(2))
    registry = getattr(holder, "_parameters", {})
    print(type(holder).__name__, "| in __dict__:", "w" in vars(holder), "| registered:", "w" in registry)

# %% [markdown]
# You can ask the source as well. Does the text of the class `Parameter` mention the registry at all, and does the
# method that catches assignments?

# %%
for thing in (nn.Parameter, nn.Module.__setattr__, nn.Module.register_parameter):
    print(thing.__qualname__, "|", "_parameters" in inspect.getsource(thing))

# %% [markdown]
# `Module.__setattr__`, which you walked through in chapter 1, asks `isinstance(value, Parameter)` and hands over to
# `register_parameter`. That is the whole of registration.
#
# ### Plain tensors stay behind
#
# What `scale` does to its module is loud on another device, and far from its cause: the first operation that mixes
# the two complains, not the line that made it. A dtype can be quieter: an addition converts by itself, where a matrix
# product would have refused. The device `meta` holds shapes and no numbers, and every machine has it. Look at the two
# outcomes.


# %%
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = torch.ones(2)

    def forward(self, x):
        return self.linear(x) + self.scale


print("as float64:", Scaled().double()(torch.ones(1, 2).double()).dtype)
try:
    Scaled().to("meta")(torch.ones(1, 2, device="meta"))
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# A plain tensor can still be what you want: a cache that is recomputed for each input, for example. It is a deliberate
# choice then, and no place for anything that must survive a save or a move. For what must travel and is not trained
# there are buffers, the second registry. Here are all four homes in one module; the third, a buffer that stays out of
# the file, is a subject of chapter 3.

# %%
homes = nn.Module()
homes.trained = nn.Parameter(torch.ones(2))
homes.register_buffer("kept", torch.ones(2))
homes.register_buffer("unsaved", torch.ones(2), persistent=False)
homes.plain = torch.ones(2)

# %% [markdown]
# The table asks three questions of each. Cover the output and fill it in yourself first: twelve answers, yes or no.

# %%
homes.double()
listed, saved = dict(homes.named_parameters()), homes.state_dict()
print("           in parameters()  in state_dict()  moved")
for name in ("trained", "kept", "unsaved", "plain"):
    moved = getattr(homes, name).dtype == torch.float64
    print(f"{name:10} {name in listed!s:16} {name in saved!s:16} {moved}")

# %% [markdown]
# A buffer suits running statistics and averages of weights. A mask or a positional encoding that can be computed again
# is better left out of the file, or the file forbids another length later on.
#
# ## What a Parameter does differently
#
# It begins with a default: `requires_grad` is on, wherever the parameter is made, even where gradients are switched
# off. Only floating and complex numbers can have a gradient, so integers need the flag turned off. Look for the one
# refusal.

# %%
with torch.no_grad():
    print("made under no_grad:", nn.Parameter(torch.ones(1)).requires_grad)
print(nn.Parameter(torch.tensor([1, 2]), requires_grad=False))
try:
    nn.Parameter(torch.tensor([1, 2]))
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# A parameter uses the memory of the tensor it is made from, and forgets that tensor's history: it is always a beginning
# (a *leaf*, in autograd's words). `grad_fn` is where a tensor keeps the operation that made it. Look at the shared
# number, and at what is left of the multiplication.

# %%
numbers = torch.zeros(2)
parameter = nn.Parameter(numbers)
numbers[0] = 5.0
print("shared memory:", parameter.tolist())
history = torch.ones(2, requires_grad=True) * 2
print("history:", history.grad_fn is not None, "| as a parameter:", nn.Parameter(history).grad_fn)

# %% [markdown]
# Copying is its own as well: `copy.deepcopy` gives a parameter with the same numbers and the same flag, and without the
# gradient.

# %%
parameter.grad = torch.ones(2)
duplicate = copy.deepcopy(parameter)
print(type(duplicate).__name__, duplicate.tolist(), "| gradient:", duplicate.grad)

# %% [markdown]
# ### What operations return
#
# Here is a line that many people have written: a parameter that should start small. Predict what the module registers.

# %%
predict("ch02-scaled-parameter")

# %% [markdown]
# Look at the list of parameters first, and at the type of the attribute second.


# %%
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3)) * 0.1


small = Small()
print([name for name, _ in small.named_parameters()], type(small.w).__name__, small.w.grad_fn is not None)

# %% [markdown]
# The result of an operation is a plain tensor, whatever went in, and a plain tensor is not registered. The parameter
# existed for one line and lives on only in the history of its product. What had to be small was the tensor that goes
# *into* the parameter. The same holds for all of these:

# %%
w = nn.Parameter(torch.ones(3))
results = {"w + 0": w + 0, "w[0]": w[0], "w.clone()": w.clone(), "w.detach()": w.detach(), "w.data": w.data}
for text, result in results.items():
    print(f"{text:11} parameter: {isinstance(result, nn.Parameter)!s:6} gradient flows: {result.requires_grad}")

# %% [markdown]
# The last two are cut off from autograd: a `forward` that computes with `w.data` gives the right output, and no
# gradient ever reaches `w`.
#
# ## What may replace a parameter
#
# Once a name is a parameter's, the module guards it. Three assignments to the weight of a linear layer follow. Predict
# which of them go through.

# %%
predict("ch02-replace")

# %% [markdown]
# Look at the type of each error and at what each message says it expected.

# %%
linear = nn.Linear(2, 2)
for value in (torch.zeros(2, 2), nn.ReLU(), None):
    try:
        linear.weight = value
        print("accepted:", value)
    except TypeError as error:
        print("TypeError |", error)

# %% [markdown]
# Without this guard, a trained weight would silently become what `small.w` was: an ordinary attribute. New *numbers*
# for an existing parameter go in place, under `torch.no_grad()`, so that the copy is not part of what is learned.
# Without it autograd refuses. Look at which object the module holds afterwards.

# %%
linear = nn.Linear(2, 2)
before = linear.weight
try:
    linear.weight.fill_(1.0)
except RuntimeError as error:
    print("RuntimeError |", error)
with torch.no_grad():
    linear.weight.fill_(1.0)
print(linear.weight.tolist(), "| same object:", linear.weight is before)

# %% [markdown]
# A new *parameter* is accepted over anything: over a parameter, a buffer or a child, whose registry then loses the
# name. The other direction is refused, and buffers have a guard of their own, which wants tensors. Look at the two
# registries before and after.

# %%
keeper = nn.Module()
keeper.register_buffer("kept", torch.ones(1))
keeper.kept = torch.zeros(1)
print("a tensor over a buffer:", list(keeper._buffers), list(keeper._parameters))
keeper.kept = nn.Parameter(torch.zeros(1))
print("a parameter over a buffer:", list(keeper._buffers), list(keeper._parameters))

# %% [markdown]
# ### An empty slot
#
# `None` over a parameter keeps the name: the slot is open, and empty. `register_parameter(name, None)` makes one from
# the start, which is how `nn.Linear` says that it has no bias. An ordinary `self.bias = None` reads the same. Predict
# where the two part.

# %%
predict("ch02-slot")

# %% [markdown]
# A tensor is assigned to each, by mistake. Look at who notices.

# %%
slot, ordinary = nn.Module(), nn.Module()
slot.register_parameter("bias", None)
ordinary.bias = None
for module in (slot, ordinary):
    try:
        module.bias = torch.zeros(2)
        print("no error | registered:", [name for name, _ in module.named_parameters()])
    except TypeError as error:
        print("TypeError |", error)

# %% [markdown]
# The empty slot is neither listed nor saved. It still guards its name, and a file that contains a bias is refused.

# %%
without = nn.Linear(2, 1, bias=False)
print(without._parameters.keys(), [name for name, _ in without.named_parameters()], list(without.state_dict()))
try:
    without.load_state_dict(nn.Linear(2, 1).state_dict())
except RuntimeError as error:
    print(str(error).splitlines()[1].strip())

# %% [markdown]
# ### register_parameter by hand
#
# `self.w = nn.Parameter(...)` calls it for you. You need it yourself for empty slots and for names that are computed.
# Look at the two names that come out of the loop, and check the numbers: a row of two ones, times 1, then times 2.


# %%
class Powers(nn.Module):
    def __init__(self):
        super().__init__()
        for number in (1, 2):
            self.register_parameter(f"weight_{number}", nn.Parameter(torch.eye(2) * number))

    def forward(self, x):
        return x @ self.weight_1 @ self.weight_2


print([name for name, _ in Powers().named_parameters()], Powers()(torch.ones(1, 2)).tolist())

# %% [markdown]
# And here are the lines with which it refuses, read from the copy that is installed on your machine. Which of them
# would have caught the line of the module `Small`?

# %%
source = inspect.getsource(nn.Module.register_parameter).splitlines()
for number, line in enumerate(source):
    if "raise " in line:
        print(line.strip().split("(")[0], "|", source[number - 1].strip())

# %% [markdown]
# The one that asks `isinstance`: the product was no parameter. But nobody put the question, for with that type
# `__setattr__` never calls `register_parameter`. And a dot is refused because names are joined by dots into paths. That
# is the next subject.
#
# ## The walk
#
# `named_parameters()` is the walk that optimizers, summaries and files begin with. It visits the module itself, then
# each child, and everything below that child before the next one. This tree has a parameter that is registered last.
# Predict where it stands in the list.

# %%
predict("ch02-order")

# %% [markdown]
# Look at the order of the five names, and at how many dots each has.

# %%
root, encoder = nn.Module(), nn.Module()
encoder.query = nn.Linear(2, 2, bias=False)
encoder.offset = nn.Parameter(torch.zeros(2))
root.encoder = encoder
root.head = nn.Linear(2, 1)
root.scale = nn.Parameter(torch.ones(1))
for name, parameter in root.named_parameters():
    print(name, tuple(parameter.shape))

# %% [markdown]
# A module's own parameters first, in the order of registration, then its children in theirs. `scale` was registered
# last and is listed first; `encoder.offset` comes before `encoder.query.weight` for the same reason.
#
# *Listed* means registered and not empty. A frozen parameter is listed too: if you want only those that learn, filter
# for `requires_grad` yourself. Look at the list after freezing.

# %%
root.head.requires_grad_(False)
print("listed:   ", len(list(root.parameters())))
print("trainable:", [name for name, parameter in root.named_parameters() if parameter.requires_grad])

# %% [markdown]
# ### Paths
#
# The name is the path from the module that you asked: names of children, then the parameter's, joined by dots. In a
# `nn.Sequential` the children are called 0, 1, 2. Look for the number that is missing.

# %%
stack = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
print(stack.state_dict().keys())

# %% [markdown]
# The ReLU is child 1 and has no parameters. Asked from another place, the same parameter has another name, and `prefix`
# puts a path before it. Look at one weight under three names.

# %%
print([name for name, _ in root.named_parameters() if "query" in name])
print([name for name, _ in encoder.named_parameters() if "query" in name])
print([name for name, _ in encoder.named_parameters(prefix="model.body") if "query" in name])

# %% [markdown]
# A module deep in the tree does not know its own path. It has to be handed down, or put together on the way back up.
#
# ### One weight in two places
#
# Language models often use one matrix twice: to look up the vector of a word, and to score every word at the end.
# `nn.Embedding(4, 2)` holds such a table of 4 rows; row i is the vector of word i. Assigning its weight to the output
# layer *ties* the two.


# %%
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 2)
        self.output = nn.Linear(2, 4, bias=False)
        self.output.weight = self.embedding.weight


tied = Tied()

# %% [markdown]
# One object, registered in two children. Predict how many times each of two lists holds it.

# %%
predict("ch02-tied")

# %% [markdown]
# Three lists follow. Look at which name of the two survives in the first.

# %%
print("named_parameters:", [name for name, _ in tied.named_parameters()])
print("state_dict:      ", list(tied.state_dict()))
print("no memory:       ", [name for name, _ in tied.named_parameters(remove_duplicate=False)])

# %% [markdown]
# The walk remembers which objects it met and lists each once, in the first place. What counts is the object, not its
# numbers: two fresh layers with equal values are two parameters, and so are two parameters made from the same memory.
# Here is torch's own walk once more, this time from its first line. Find the memory, what `remove_duplicate` switches
# off, and the dot that appears only after a path.

# %%
source = inspect.getsource(nn.Module._named_members).splitlines()
print("\n".join(source[source.index("        memo = set()") :]))

# %% [markdown]
# As you saw in chapter 1, it reads the registries of all modules and never calls a child's own `named_parameters()`.
#
# What breaks a tie? Everything that puts a new object into one of the two places. A copy and a conversion on the same
# device keep it; a move to `meta` makes new parameters. Look at the one `False`.


# %%
def is_tied(model):
    return model.embedding.weight is model.output.weight


print("deepcopy:", is_tied(copy.deepcopy(Tied())))
print("double:  ", is_tied(Tied().double()))
print("to meta: ", is_tied(Tied().to("meta")))

# %% [markdown]
# You have now seen every decision of the walk. A memory, a path, an order: write it. `yield from` passes on everything
# that another generator gives, which is what a walk needs when it calls itself; called without it, a generator runs
# none of its lines.

# %% [markdown]
# {{card my_named_parameters}}


# %% nbgrader={"grade": false, "grade_id": "my_named_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def my_named_parameters(module, prefix="", remove_duplicate=True):
    ### BEGIN SOLUTION
    met = set()

    def walk(current, path):
        for name, parameter in current._parameters.items():
            if parameter is None or parameter in met:
                continue
            if remove_duplicate:
                met.add(parameter)
            yield (f"{path}.{name}" if path else name), parameter
        for name, child in current._modules.items():
            if child is not None:
                yield from walk(child, f"{path}.{name}" if path else name)

    return walk(module, prefix)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_named_parameters_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_named_parameters", my_named_parameters)

# %% [markdown]
# {{hints my_named_parameters}}

# %% [markdown]
# ## Counting
#
# `numel()` says how many numbers a tensor holds. A layer from 784 to 256 has 784 · 256 + 256 = 200960, one from 256
# to 10 has 2570. Look at whether the sum agrees.

# %%
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
print(sum(parameter.numel() for parameter in net.parameters()), "=", 200960 + 2570)

# %% [markdown]
# The tied model is where counts go wrong. Its one matrix has 4 · 2 = 8 numbers. Three ways to count; look at which of
# them counts what is in memory.

# %%
print("parameters():     ", sum(p.numel() for p in tied.parameters()))
print("state_dict():     ", sum(t.numel() for t in tied.state_dict().values()))
print("child after child:", sum(p.numel() for child in tied.children() for p in child.parameters()))

# %% [markdown]
# The last way is what a table with one line for each child does, unless it remembers what an earlier line has
# counted. A usual rule is that of the walk: the weight belongs to the child under whose name it is listed.
# `named_children()` gives the direct children with their names, those without parameters included, and
# `name.partition(".")` splits a path at its first dot; look at what it gives for an own parameter.

# %%
for name, parameter in root.named_parameters():
    print(name.partition("."), parameter.numel())

# %% [markdown]
# ### Shapes without memory
#
# On the device `meta` a model has all its shapes and none of its memory. Ten billion numbers are counted on any laptop.
# Look at the addresses, and conclude whether an address can tell two parameters apart.

# %%
with torch.device("meta"):
    huge = nn.Linear(100_000, 100_000)
print(sum(parameter.numel() for parameter in huge.parameters()))
print("addresses:", huge.weight.data_ptr(), huge.bias.data_ptr())

# %% [markdown]
# Nothing can be copied out of it. To use it, either ask for empty memory with `to_empty` and fill it, or load a file
# in a special way that you will meet below. A layer fills itself in `reset_parameters`: here with two numbers between
# -1/√2 and 1/√2, by a rule of this chapter's last section. Look at what a plain move says.

# %%
with torch.device("meta"):
    shapes = nn.Linear(2, 1)
try:
    shapes.to("cpu")
except NotImplementedError as error:
    print("NotImplementedError |", str(error).split(";")[0])
filled = shapes.to_empty(device="cpu")
filled.reset_parameters()
print(filled.weight.shape, "within bounds:", bool((filled.weight.abs() <= 1 / math.sqrt(2)).all()))

# %% [markdown]
# {{card count_parameters}}


# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(module):
    ### BEGIN SOLUTION
    total, trainable = 0, 0
    by_child = {name: 0 for name, _ in module.named_children()}
    for name, parameter in module.named_parameters():
        size = parameter.numel()
        total += size
        if parameter.requires_grad:
            trainable += size
        child, dot, _ = name.partition(".")
        if dot:
            by_child[child] += size
    return {"total": total, "trainable": trainable, "by_child": by_child}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "count_parameters_check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("count_parameters", count_parameters)

# %% [markdown]
# {{hints count_parameters}}

# %% [markdown]
# ## Moving and converting
#
# `Module.to` changes the module in place and returns it. `Tensor.to` returns another tensor, or the same one when
# there is nothing to do. People who know one of the two are surprised by the other. Look at the two identities.

# %%
module, tensor = nn.Linear(1, 1), torch.ones(1)
print("module:", module.to(torch.float64) is module, "| tensor:", tensor.to(torch.float64) is tensor)

# %% [markdown]
# More than one thing can be new after `module.to`: the module, the parameters, the buffers. Predict which are.

# %%
predict("ch02-to")

# %% [markdown]
# Three tensors of one module are held by another name before the conversion. Look at which of them the module still has
# afterwards, and at the integer that is not converted.

# %%
module = nn.Module()
module.weight = nn.Parameter(torch.ones(2))
module.register_buffer("mean", torch.ones(2))
module.register_buffer("steps", torch.tensor(3))
held = {"weight": module.weight, "mean": module.mean, "steps": module.steps}
module.to(torch.bfloat16)
for name, tensor in held.items():
    print(f"{name:7} same object: {getattr(module, name) is tensor!s:6} {getattr(module, name).dtype}")

# %% [markdown]
# A parameter that is converted stays the same object with new numbers inside; an optimizer that holds it goes on
# working. A converted buffer is a new tensor. To `meta` everything is new, which is why the tie broke. And a module
# refuses to become integer at all:

# %%
try:
    nn.Linear(1, 1).to(torch.int64)
except TypeError as error:
    print("TypeError |", error)

# %% [markdown]
# ## The file knows names
#
# `state_dict()` maps paths to tensors: parameters and buffers, detached, and over the same memory. It is a view of the
# model and no photograph. Look at the flag, then at what happens to the entry when the model changes.

# %%
linear = nn.Linear(1, 1)
live = linear.state_dict()
with torch.no_grad():
    linear.weight.fill_(7.0)
print("a parameter:", isinstance(live["weight"], nn.Parameter), "| requires a gradient:", live["weight"].requires_grad)
print("taken before the change, shows", live["weight"].item())

# %% [markdown]
# Loading copies numbers by name into the parameters that are there. Names that are not registered are not in the file,
# so that a model that forgot to register a weight reloads without complaint, and wrongly. Look at the report and at the
# two scales.

# %%
trained = Scaled()
trained.scale *= 3
fresh = Scaled()
print(fresh.load_state_dict(trained.state_dict()))
print("scale:", trained.scale.tolist(), "and after reload:", fresh.scale.tolist())

# %% [markdown]
# There is a second way to load: `assign=True` puts the file's tensors in the place of the module's. It serves models
# that were built on `meta` and have no memory to copy into. Predict what it does to a tie.

# %%
predict("ch02-assign")

# %% [markdown]
# First both ways on the tied model; look at the tie and at the number of parameters. Then a model without memory gets
# the numbers of `linear`, which you filled with 7 above.

# %%
tied = Tied()
tied.load_state_dict(Tied().state_dict())
print("copied:  tied", is_tied(tied), "| parameters", len(list(tied.parameters())))
tied.load_state_dict(Tied().state_dict(), assign=True)
print("assigned: tied", is_tied(tied), "| parameters", len(list(tied.parameters())))
with torch.device("meta"):
    shapes = nn.Linear(1, 1)
shapes.load_state_dict(linear.state_dict(), assign=True)
print(shapes.weight.device, shapes.weight.item())

# %% [markdown]
# New objects again, unless you ask torch to swap what is inside instead
# (`torch.__future__.set_swap_module_params_on_conversion(True)`, which serves `.to` as well). A plain load into the
# model on `meta` would have been a warning and nothing else:

# %%
with torch.device("meta"):
    shapes = nn.Linear(1, 1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    shapes.load_state_dict(linear.state_dict())
print(str(caught[0].message)[:59], "| still on", shapes.weight.device)

# %% [markdown]
# ## What the optimizer holds
#
# An optimizer takes a list once, when it is built. It keeps *objects*: no names, no module, no second look. With that
# you can solve the bug of the first page. Predict what the optimizer of a model does after a weight is replaced.

# %%
predict("ch02-optimizer-holds")

# %% [markdown]
# Ask by identity: does the optimizer hold the weight that the model computes with?

# %%
model = nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
(held,) = optimizer.param_groups[0]["params"]
print("after building:", held is model.weight)
model.double()
print("after double():", held is model.weight)
model.weight = nn.Parameter(torch.tensor([[2.0]]))
print("after replacing:", held is model.weight)

# %% [markdown]
# The optimizer is left with a weight that no model uses any more, and clears *its* gradient, which is why the other
# one grew. `held is model.weight` is the test to remember. The cure for the first page is to copy the 2 into the
# parameter that is there, or to build the optimizer last. For a layer that is added late there is `add_param_group`.
# Look at the counts.

# %%
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.extra = nn.Linear(1, 1)
print("parameters:", len(list(model.parameters())))
print("held:      ", [len(group["params"]) for group in optimizer.param_groups])
optimizer.add_param_group({"params": model.extra.parameters()})
print("held now:  ", [len(group["params"]) for group in optimizer.param_groups])

# %% [markdown]
# It accepts tensors, pairs of name and tensor, and dicts of groups, and is strict about the rest. Five lists follow
# that people pass; look at which one only warns.

# %%
w = nn.Parameter(torch.ones(1))
two_groups = [{"params": [w]}, {"params": [w]}]
wrong = {"a tensor": w, "a result": [w * 2], "a name": ["w"], "twice": [w, w], "in two groups": two_groups}
for text, given in wrong.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.optim.SGD(given, lr=0.1)
            print(f"{text:13} | {caught[0].category.__name__}: {str(caught[0].message)[:62]}")
        except (TypeError, ValueError) as error:
            print(f"{text:13} | {type(error).__name__}: {str(error)[:62]}")

# %% [markdown]
# What it remembers of each parameter is stored by position. Save the optimizer of a model, load it into that of a model
# whose layers were assigned in another order, and the memories go to the wrong layers without a word. Here `a` had a
# gradient ten times as large as `b`'s; look at who has the larger memory after loading.


# %%
def pair(*names):
    model = nn.Module()
    for name in names:
        setattr(model, name, nn.Linear(1, 1, bias=False))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


first, first_optimizer = pair("a", "b")
second, second_optimizer = pair("b", "a")
(10 * first.a(torch.ones(1)) + first.b(torch.ones(1))).backward()
first_optimizer.step()
second_optimizer.load_state_dict(first_optimizer.state_dict())
print("momentum of a:", first_optimizer.state[first.a.weight]["momentum_buffer"].item())
print("after loading:", second_optimizer.state[second.a.weight]["momentum_buffer"].item())

# %% [markdown]
# One more way to lose a weight: to make it in `forward`. A tensor made there is new in each call. A *module* assigned
# there is even registered, and replaced by a fresh one in each call, which no optimizer ever met. Look at the list
# and at the identity.


# %%
class Late(nn.Module):
    def forward(self, x):
        self.layer = nn.Linear(1, 1)
        return self.layer(x)


late = Late()
late(torch.ones(1))
first_weight = late.layer.weight
late(torch.ones(1))
print([name for name, _ in late.named_parameters()], "| same weight as before:", late.layer.weight is first_weight)

# %% [markdown]
# ## The linear layer
#
# You can now build the layer under all others. It computes y = x Wᵀ + b. The weight is stored as (out, in), one row
# for each output, so that output 0 is the product of the input with row 0. Check the two numbers by hand: 1 · 1 + 2 ·
# 10 and 3 · 1 + 4 · 10, plus the bias.

# %%
linear = nn.Linear(2, 2)
with torch.no_grad():
    linear.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    linear.bias.copy_(torch.tensor([100.0, 200.0]))
x = torch.tensor([[1.0, 10.0]])
print(linear(x).tolist(), (x @ linear.weight.T + linear.bias).tolist())

# %% [markdown]
# The last axis is what is multiplied; whatever stands before it stays. `@` treats any number of axes so, and `torch.mm`
# does not. Look at the three shapes and the refusal.

# %%
for shape in ((2,), (5, 2), (3, 5, 2)):
    print(shape, "->", tuple(linear(torch.ones(shape)).shape))
try:
    torch.mm(torch.ones(3, 5, 2), linear.weight.T)
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# This is also how you check a layer of your own: copy the weights of torch's, under `no_grad`, and compare the outputs.
# Use `allclose`: a sum taken in another order can differ in its last digit.
#
# ### Where the first numbers come from
#
# A fresh layer is filled by `reset_parameters`. Read torch's, and find out what is drawn first.

# %%
source = inspect.getsource(nn.Linear.reset_parameters).splitlines()
print("\n".join(line.strip() for line in source if "init." in line or "bound" in line))

# %% [markdown]
# `kaiming_uniform_` is named after another rule, which you will meet in a moment. With `a=sqrt(5)` it draws uniformly
# between -1/√in and +1/√in, and so does the line for the bias. Predict whether you can get the very same numbers by
# filling two tensors yourself.

# %%
predict("ch02-same-numbers")

# %% [markdown]
# One seed, set three times: for torch's layer, for the same order, and for bias before weight. Look at the two lines.

# %%
bound = 1 / math.sqrt(4)
torch.manual_seed(0)
linear = nn.Linear(4, 3)
torch.manual_seed(0)
weight, bias = torch.empty(3, 4).uniform_(-bound, bound), torch.empty(3).uniform_(-bound, bound)
print("weight first:", torch.equal(weight, linear.weight), torch.equal(bias, linear.bias))
torch.manual_seed(0)
bias, weight = torch.empty(3).uniform_(-bound, bound), torch.empty(3, 4).uniform_(-bound, bound)
print("bias first:  ", torch.equal(weight, linear.weight), torch.equal(bias, linear.bias))

# %% [markdown]
# A seed names a stream of numbers, and every draw takes the next ones. A layer that draws a number more than torch's
# is fine by itself, and shifts every layer that is built after it. And the same number, computed in another way, is
# rounded otherwise. Look at the largest gap: about one last digit.

# %%
torch.manual_seed(0)
bound = 1 / math.sqrt(7)
in_one_go = torch.empty(100).uniform_(-bound, bound)
torch.manual_seed(0)
in_two_steps = torch.rand(100) * 2 * bound - bound
print("equal:", torch.equal(in_one_go, in_two_steps))
print("gap below 1e-7:", (in_one_go - in_two_steps).abs().max().item() < 1e-7)

# %% [markdown]
# Why not just `torch.randn`? One output is a sum of `in` products, so its size grows with √in unless the weights
# shrink by as much. A rule of Kaiming He, whose first name is in those functions, takes normal numbers of size √(2/in)
# (`kaiming_normal_` does so): the 2 makes up for what a ReLU cuts off. Send one batch through ten layers of 256, each
# with a ReLU, and look at the size (the standard deviation) of what comes out.


# %%
def size_after_ten(make):
    torch.manual_seed(0)
    x = torch.randn(64, 256)
    for _ in range(10):
        x = torch.relu(x @ make().T)
    return x.std().item()


def he_weight():
    return nn.init.kaiming_normal_(torch.empty(256, 256), nonlinearity="relu")


print(f"randn      {size_after_ten(lambda: torch.randn(256, 256)):.0e}")
print(f"nn.Linear  {size_after_ten(lambda: nn.Linear(256, 256).weight):.0e}")
print(f"He's rule  {size_after_ten(he_weight):.0e}")

# %% [markdown]
# Plain normal numbers explode. He's rule about keeps the size. And `nn.Linear`'s default, whatever its name says, is
# not He's rule: it shrinks. Know it when a deep plain stack of yours is silent at the start.
#
# Now write the layer. Fill in place and under `no_grad`, so that the parameters stay the objects that others may hold.

# %% [markdown]
# {{card my_linear}}


# %% nbgrader={"grade": false, "grade_id": "my_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        ### BEGIN SOLUTION
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()
        ### END SOLUTION

    def reset_parameters(self):
        ### BEGIN SOLUTION
        largest = 1 / math.sqrt(self.in_features)
        with torch.no_grad():
            self.weight.uniform_(-largest, largest)
            if self.bias is not None:
                self.bias.uniform_(-largest, largest)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        product = x @ self.weight.T
        return product if self.bias is None else product + self.bias
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_linear_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_linear", MyLinear)

# %% [markdown]
# {{hints my_linear}}

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch02-mask")

# %% [markdown]
# The second is about a parameter that is not one.

# %%
quiz("ch02-device")

# %% [markdown]
# The third is about a summary that does not add up.

# %%
quiz("ch02-summary")

# %% [markdown]
# The last one is the bug of the first page, in other clothes.

# %%
quiz("ch02-late-head")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | a weight has a gradient and never moves; the gradient grows from step to step | the optimizer holds another object: compare with `is` |
# | an attribute of a module is missing from `parameters()` | its type: the result of an operation is a plain tensor |
# | `can't optimize a non-leaf Tensor` | the same result, handed to an optimizer |
# | `cannot assign ... as parameter` | numbers belong into the parameter, in place; only a Parameter or None may replace it |
# | `a leaf Variable that requires grad is being used in an in-place operation` | the same fill, without `torch.no_grad()` |
# | two dtypes or devices meet in `forward` | a plain tensor that did not move with its module |
# | a summary counts more than `sum(p.numel() for p in model.parameters())` | a tied weight, or buffers counted from `state_dict()` |
# | two tied layers drift apart | something put a new object into one place: `assign=True`, a move to or from `meta` |
# | `optimizer contains a parameter group with duplicate parameters` | a list put together by hand from children that share a weight |
# | a resumed optimizer behaves oddly after a refactoring | its state goes by position: compare the order of `named_parameters()` |
# | your layer is right, and the seed gives other numbers | draws that are too many, or in another order |
#
# ## What to read next
#
# - `torch/nn/parameter.py`: the class `Parameter` is short; read `__new__` and `__deepcopy__`.
# - `torch/nn/modules/module.py`: `register_parameter`, then `_named_members` and `_apply`, which is what `.to` calls.
# - `torch/nn/modules/linear.py`, beside your own layer.
# - Chapter 3, where the second registry gets its turn: tensors that travel and are not trained.
