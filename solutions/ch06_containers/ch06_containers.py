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
# # Chapter 6 · Containers
#
# A layer is a module, and so is everything that holds layers. In this chapter you look at torch's containers from
# inside: where the layers land, who runs them, and what a plain list, dict or function beside them costs. You then
# write a Sequential, a ModuleList and three activations, and train a network in which every part is yours.
#
# Plan for a good three hours, in two sittings: the first ends after the activations. Two of them go into seven exercises,
# all of them short. If time is, too, leave `my_tanh`, `my_module_list` and the section marked optional for later: no later
# chapter builds on them. You need chapters 0 to 5, above all registration and the difference between `layer(x)` and
# `layer.forward(x)`.
#
# The first cell loads what you need. Run it now.

# %%
import inspect
from collections import OrderedDict

import torch
from torch import nn

from autograder import check, predict, quiz, recall
from simulations import Containers

# %% [markdown]
# ## A model cut in two
#
# Somebody has a trained network and wants what comes before its head, to feed it into something else. The network is
# small enough to compute in your head: the first layer multiplies by -2, the head by 10, and between them is a ReLU.


# %%
class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 1, bias=False)
        self.head = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.first.weight, -2.0)
        nn.init.constant_(self.head.weight, 10.0)

    def forward(self, x):
        return self.head(torch.relu(self.first(x)))


# %% [markdown]
# A well-known line cuts the head off: take all children but the last, and put them into an `nn.Sequential`. Look at the
# features for the input 1, and at what the head makes of them.

# %%
model = Trained()
one = torch.ones(1, 1)
cut = nn.Sequential(*list(model.children())[:-1])
print("the model:            ", model(one).item())
print("features, then head:  ", model.head(cut(one)).item())

# %% [markdown]
# 0 became -20. No error, no warning, and the shapes are right. The list of children holds modules; the ReLU was a
# function called in `forward`, so it is not among them. Nor does the list know in which order things run: it has the
# order of registration. Register the head first, and the same line cuts off the wrong end.
#
# A container keeps modules. What it does not keep is everything between them. This chapter is about both halves of
# that sentence. First three questions on the chapters before.

# %%
recall("ch06")

# %% [markdown]
# ## Five containers, and their plain twins
#
# Python has a list, a tuple, a dict and a set, and a module looks into none of them. Three layers, 10 · 10 + 10 = 110
# numbers each, so 330: look at who reports them.


# %%
def holding(container):
    model = nn.Module()
    model.layers = container([nn.Linear(10, 10) for _ in range(3)])
    return model


for container in (list, tuple, set, lambda layers: dict(enumerate(layers)), nn.ModuleList):
    print(sum(p.numel() for p in holding(container).parameters()), "|", type(holding(container).layers).__name__)

# %% [markdown]
# Chapter 0 showed what follows from a zero: not trained, not saved, not moved, not switched, not printed. torch brings
# five containers that are modules themselves. Three hold modules, two hold parameters:
#
# | container | its plain twin | reach for it when | how you get at an item |
# |---|---|---|---|
# | `nn.Sequential` | a chain of calls | layers run one after another | `net(x)` runs all |
# | `nn.ModuleList` | `list` | you write the loop yourself | `layers[i]`, `for layer in layers` |
# | `nn.ModuleDict` | `dict` | you choose by name | `heads["price"]` |
# | `nn.ParameterList` | `list` | single weights, in a row | `weights[i]` |
# | `nn.ParameterDict` | `dict` | single weights, by name | `weights["scale"]` |
#
# There is no list of buffers. And for a single layer you need none of them: `self.norm = nn.LayerNorm(8)` will do.
#
# The figure puts the same layers into torch's containers and their twins and asks all of them the same five questions, in
# real torch. Before each step, say who will answer yes. Look at the last question above all: who can be called?

# %%
Containers()

# %% [markdown]
# Registering is one thing, running another: a Sequential does both, a ModuleList and a ModuleDict only the first.
#
# ## Where the children land
#
# You may read that an `nn.ModuleList` registers its layers in the model's `_modules`. Predict what is in there.

# %%
predict("ch06-where")

# %% [markdown]
# One model, one list of three layers. Look at the model's registry, then at the list's, then at the names that come of
# the two.

# %%
source = [nn.Linear(10, 10) for _ in range(3)]
model = nn.Module()
model.layers = nn.ModuleList(source)
print("the model's registry:", list(model._modules))
print("the list's registry: ", list(model.layers._modules))
print([name for name, _ in model.named_parameters()][:2])

# %% [markdown]
# Two levels: the model knows one child, the list knows three. `parameters()` gets to the layers because it walks from
# child to child, and every dot in `layers.0.weight` is one step of that walk.
#
# The list made a registry of its own when it was built. The Python list that you handed in is only where the layers
# came from. Empty that one and append to the other, and look at who noticed.

# %%
source.clear()
print("after source.clear():", len(model.layers))
model.layers.append(nn.Linear(10, 10))
print("after model.layers.append:", len(model.layers), "| source:", len(source))
print("is it a list?", isinstance(model.layers, list))

# %% [markdown]
# ## What Sequential is
#
# Now the first container from inside. Three layers with names of their own are put into a row, and the row is called.
# Look at the count for 784 → 256 → 10: 784 · 256 + 256 + 256 · 10 + 10 = 203530.

# %%
wide, bend, narrow = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)
net = nn.Sequential(wide, bend, narrow)
print(net(torch.ones(2, 784)).shape, sum(p.numel() for p in net.parameters()))
print(net[0] is wide, net[-1] is narrow)

# %% [markdown]
# You did not write a `forward`. Here is the one that ran, read from the copy of torch on your machine, together with
# the method that its loop asks for. Where are the layers kept, and what would happen to a layer that stands there twice?

# %%
source = inspect.getsource(nn.Sequential.forward).splitlines()
print("\n".join(line[4:] for line in [source[0], *source[-3:]]))
print("\n".join(line[4:] for line in inspect.getsource(nn.Sequential.__iter__).splitlines()[-2:]))

# %% [markdown]
# Three lines of work. Each layer is *called*, so hooks and everything else from chapter 5 apply. The registry is the
# only record: the names are the numbers, and the order of the dict is the order of execution. With an `OrderedDict`
# the names are yours, and you get at a layer by its name.

# %%
named = nn.Sequential(OrderedDict(encoder=nn.Linear(4, 3), bend=nn.ReLU(), classifier=nn.Linear(3, 2)))
print(named.encoder, "|", named[0] is named.encoder)
print(list(named.state_dict()))

# %% [markdown]
# ### Slices
#
# A slice of a Sequential is a Sequential of the same layers, not of copies. So the values inside are one slice away.
# Before you look, predict under which names a slice keeps its layers, because the two containers differ.

# %%
predict("ch06-slice-names")

# %% [markdown]
# The same three layers in a Sequential and in a ModuleList, cut after the first. Compare the keys.

# %%
print("Sequential:", list(named[1:].state_dict()), list(net[1:].state_dict()))
print("ModuleList:", list(nn.ModuleList(net)[1:].state_dict()))
print("halfway:   ", net[:2](torch.ones(1, 784)).shape, net[:2][0] is wide)

# %% [markdown]
# A slice of a Sequential keeps its names, so the keys of a part still fit the file of the whole. A slice of a
# ModuleList starts again at 0. Deleting renumbers in both: the gap that `del` leaves is closed. Look at the name of the
# last layer before and after.

# %%
shorter = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
print(list(shorter.state_dict()))
del shorter[1]
print(list(shorter.state_dict()))

# %% [markdown]
# A file from before the deletion has `2.weight` and no longer fits. Names made of numbers are fragile; that is the best
# reason for an `OrderedDict`.
#
# ### The same layer twice
#
# A layer may stand in a Sequential twice: it runs twice and is trained as one. Predict what `children()` makes of it.

# %%
predict("ch06-twice")

# %% [markdown]
# One layer that doubles, twice in a row, so 1 becomes 4. Then the stack is rebuilt from `children()`. Look at the
# results, and at the four counts in between.

# %%
double = nn.Linear(1, 1, bias=False)
nn.init.constant_(double.weight, 2.0)
twice = nn.Sequential(double, double)
print("runs:", twice(one).item(), "| rebuilt from children():", nn.Sequential(*twice.children())(one).item())
print("len", len(twice), "| children", len(list(twice.children())))
print("parameters", len(list(twice.parameters())), "| keys", len(twice.state_dict()))

# %% [markdown]
# `children()` and `parameters()` give every object once; the registry and the file have every name. That is right for
# an optimizer, which must not step a weight twice, and wrong for anyone who wants to run the layers. To take a
# Sequential apart, iterate over it.
#
# ### What it refuses
#
# One input, and only modules. Look at when each error comes: as the stack is built, or at the first batch.

# %%
attempts = {
    "a function": lambda: nn.Sequential(nn.ReLU(), torch.relu),
    "a list of layers": lambda: nn.Sequential([nn.ReLU()]),
    "two inputs": lambda: nn.Sequential(nn.ReLU())(one, one),
    "None": lambda: nn.Sequential(nn.ReLU(), None)(one),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except TypeError as error:
        print(name, "| TypeError:", error)

# %% [markdown]
# The first two fail when they are built, which is where you want an error to be. `None` is accepted as an empty slot and
# fails only when its turn comes. The function needs its own section, further down.
#
# You will also read that a Sequential can have no skips, no branches and no conditions. That is true of the row itself.
# Any element may be a module that has all of these inside, and two values can travel as one tuple from one of your own
# modules to the next.
#
# ### Looking inside without a change
#
# "Intermediate values are hidden" is the other complaint. You have two remedies already: a slice, and your
# `record_activations` of chapter 4. A third is a module that prints and passes on, which needs an edit of the model, and
# one to remove it.
#
# You have seen every decision that Sequential makes. Make them yourself.

# %% [markdown]
# {{card my_sequential}}


# %% nbgrader={"grade": false, "grade_id": "my_sequential", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MySequential(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        ### BEGIN SOLUTION
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            pairs = layers[0].items()
        else:
            pairs = ((str(number), layer) for number, layer in enumerate(layers))
        for name, layer in pairs:
            self.add_module(name, layer)
        ### END SOLUTION

    def __len__(self):
        ### BEGIN SOLUTION
        return len(self._modules)
        ### END SOLUTION

    def __iter__(self):
        ### BEGIN SOLUTION
        return iter(self._modules.values())
        ### END SOLUTION

    def __getitem__(self, index):
        ### BEGIN SOLUTION
        chosen = list(self._modules.items())[index]
        return MySequential(OrderedDict(chosen)) if isinstance(index, slice) else chosen[1]
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        for layer in self:
            x = layer(x)
        return x
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_sequential_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_sequential", MySequential)

# %% [markdown]
# {{hints my_sequential}}

# %% [markdown]
# ## Why wrap a function in a class?
#
# ReLU is one line of arithmetic. There is `torch.relu`, a function, and `nn.ReLU`, a module that stores nothing. In a
# `forward` of your own the function is all you need. Look at what the class adds.

# %%
as_function = Trained()
as_module = nn.Sequential(as_function.first, nn.ReLU(), as_function.head)
print("same answer:", as_function(one).item() == as_module(one).item())
print("modules, function version:", [type(part).__name__ for part in as_function.children()])
print("modules, module version:  ", [type(part).__name__ for part in as_module])
print("in the file:", list(nn.ReLU().state_dict()))

# %% [markdown]
# As a module the ReLU has a place: it can stand in a Sequential, carry a hook, be replaced by another, appear in `print`,
# and survive the cut of the first page. It costs nothing in the file. That is why every activation exists twice.
#
# To wrap a function, a class with a `forward` is enough. Look at how few lines it takes to make a square a layer.


# %%
class Square(nn.Module):
    def forward(self, x):
        return x * x


print(nn.Sequential(Square(), Square())(torch.tensor([3.0])))

# %% [markdown]
# ## Four ways to write ReLU
#
# "Negative numbers become 0" has many spellings: multiply by a mask, choose by a condition, clamp, take the larger of x
# and 0. On random numbers they all agree. Predict what the first does at the left end of the number line.

# %%
predict("ch06-minus-infinity")

# %% [markdown]
# Four spellings and torch's own, on five inputs that a test with random numbers never meets. A good activation passes on
# nan, the sign that something is broken, instead of hiding it. Find the three entries that differ from the last line.

# %%
spellings = {
    "mask": lambda x: x * (x > 0),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "clamp": lambda x: x.clamp(min=0),
    "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "torch.relu": torch.relu,
}
ends = torch.tensor([-torch.inf, -2.0, 0.0, 3.0, torch.nan])
for name, spelling in spellings.items():
    print(f"{name:10}", spelling(ends).tolist())

# %% [markdown]
# The mask turns minus infinity into nan, and the condition turns nan into 0. The third is the -0.0 that the mask gives
# for -2: it equals 0 in every comparison and does no harm.
#
# Values are half of an activation. The other half is its gradient, and there is one point where it is a matter of
# choice: at exactly 0, where the line has a corner. Look at the four choices.

# %%
for name, spelling in spellings.items():
    zero = torch.zeros((), requires_grad=True)
    spelling(zero).backward()
    print(f"{name:10} gradient at 0: {zero.grad.item()}")

# %% [markdown]
# torch says 0. `clamp` counts 0 as inside its range and says 1; `maximum` shares between two equal arguments and says 0.5.
# A hidden unit whose inputs are all 0, behind padding for instance, sees the difference. So each spelling fails
# somewhere, and a right one is a small change to one of them.

# %% [markdown]
# {{card my_relu}}


# %% nbgrader={"grade": false, "grade_id": "my_relu", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyReLU(nn.Module):
    def forward(self, x):
        ### BEGIN SOLUTION
        return torch.where(x <= 0, torch.zeros_like(x), x)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_relu_check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("my_relu", MyReLU)

# %% [markdown]
# {{hints my_relu}}

# %% [markdown]
# ## A right value with a wrong gradient
#
# The sigmoid is 1 / (1 + exp(-x)). Take x = -100: exp(100) is about 10 to the 43rd, and float32 ends at 3 · 10 to the 38th,
# so it is infinite, and 1 / infinity is 0. The right value. Predict the gradient.

# %%
predict("ch06-sigmoid-gradient")

# %% [markdown]
# Look at the value and the gradient at -100, of the formula and of torch's own.


# %%
def formula(x):
    return 1 / (1 + torch.exp(-x))


for function in (formula, torch.sigmoid):
    x = torch.tensor(-100.0, requires_grad=True)
    y = function(x)
    y.backward()
    print(f"value {y.item():.1f}, gradient {x.grad.item():.1f}")

# %% [markdown]
# Nothing shows in the forward pass. On the way back the chain rule multiplies 1 / (1 + exp(100))², which is 0, with
# exp(100), which is infinite: nan. One saturated unit in one row is enough. The next step writes the nan into a weight,
# and the next forward pass into everything behind it. Look at how one row out of three spoils the gradient.

# %%
layer = nn.Linear(1, 1)
nn.init.constant_(layer.weight, 1.0)
rows = torch.tensor([[0.0], [1.0], [-200.0]])
formula(layer(rows)).sum().backward()
print("gradient of the weight:", layer.weight.grad.item())

# %% [markdown]
# Two rows were harmless; the gradient is a sum over rows, and a sum with a nan is nan. A usual remedy chooses between two
# formulas, one safe for each side. It does not help as long as both are computed: `torch.where` sends a gradient of 0 into
# the branch that was not chosen, and 0 times infinity is nan again. Look at the values, and at the gradients beside them.

# %%
x = torch.tensor([-100.0, 100.0], requires_grad=True)
left, right = torch.exp(x) / (1 + torch.exp(x)), 1 / (1 + torch.exp(-x))
y = torch.where(x < 0, left, right)
y.sum().backward()
print([round(number, 3) for number in y.tolist()], x.grad.tolist())

# %% [markdown]
# A second remedy never lets exp see a positive number, by way of the absolute value. All values are right, both ends are
# finite. Look at the slope at exactly 0, which should be a quarter.

# %%
x = torch.zeros((), requires_grad=True)
small = torch.exp(-x.abs())
torch.where(x < 0, small / (1 + small), 1 / (1 + small)).backward()
print("gradient at 0:", x.grad.item())

# %% [markdown]
# The corner of |x| took it: its derivative at 0 is 0 for autograd, and 0 times anything stays 0. So test an activation in
# four places: in the middle, at both ends, at 0, and with nan; and always forward and backward.

# %% [markdown]
# {{card my_sigmoid}}


# %% nbgrader={"grade": false, "grade_id": "my_sigmoid", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MySigmoid(nn.Module):
    def forward(self, x):
        ### BEGIN SOLUTION
        # Beyond 80 nothing changes that float32 could show, and exp stays finite.
        return 1 / (1 + torch.exp(-x.clamp(-80, 80)))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_sigmoid_check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("my_sigmoid", MySigmoid)

# %% [markdown]
# {{hints my_sigmoid}}

# %% [markdown]
# The third one is the sigmoid's relative. Its textbook formula fails loudly, in the value itself. Look at the last number,
# and ask what is divided by what.

# %%
x = torch.tensor([1.0, 10.0, 100.0])
up, down = torch.exp(x), torch.exp(-x)
print(((up - down) / (up + down)).tolist())

# %% [markdown]
# {{card my_tanh}}


# %% nbgrader={"grade": false, "grade_id": "my_tanh", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyTanh(nn.Module):
    def forward(self, x):
        ### BEGIN SOLUTION
        grown = torch.exp(2 * x.clamp(-20, 20))
        return (grown - 1) / (grown + 1)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_tanh_check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("my_tanh", MyTanh)

# %% [markdown]
# {{hints my_tanh}}

# %% [markdown]
# ## What a ModuleList does that a list does not
#
# Here is a good place for a break. What follows is about the containers that do not run anything by themselves.
#
# A ModuleList is no list, but it behaves like one: index, slice, loop, `append`, `extend`, `insert`, `pop`, `del`. What it
# does not have is a `forward`: in which order the layers run is for you to write. Look at what happens when you call it.

# %%
layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)])
try:
    layers(torch.ones(1, 2))
except NotImplementedError as error:
    print("NotImplementedError |", error)

# %% [markdown]
# That loop in your own `forward` is worth having: you can print a shape there, skip a layer, or stop early. Now the
# bookkeeping. Delete the middle layer, and look at the names.

# %%
last = layers[2]
del layers[1]
print(list(layers._modules), "| the last one is", "1" if layers[1] is last else "2")

# %% [markdown]
# Without renumbering, the names would be 0 and 2, and the next `append`, which takes the length as its name, would
# overwrite the layer called 2. Here are torch's own lines against that. Which of them closes the gap?

# %%
source = inspect.getsource(nn.ModuleList.__delitem__).splitlines()
print("\n".join(line[8:] for line in source[-5:]))

# %% [markdown]
# It is no list in small things as well, and they are worth knowing before you rely on them. Look at which of these
# work: a position from the end, a function instead of a module, and adding two of them.

# %%
layers = nn.ModuleList([nn.ReLU()])
layers.insert(0, torch.relu)
print("insert took:", callable(layers[0]), "| a module:", isinstance(layers[0], nn.Module))
try:
    layers.insert(-1, nn.ReLU())
except KeyError as error:
    print("insert(-1) | KeyError", error)
print("added:", [type(part).__name__ for part in nn.ModuleList([nn.ReLU()]) + nn.ModuleList([nn.Tanh()])])

# %% [markdown]
# `append` and the constructor check what they get; `insert` writes into the registry directly and checks nothing. Yours may
# do better. It needs to hold its numbers together through every change.

# %% [markdown]
# {{card my_module_list}}


# %% nbgrader={"grade": false, "grade_id": "my_module_list", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MyModuleList(nn.Module):
    def __init__(self, modules=()):
        super().__init__()
        ### BEGIN SOLUTION
        self.extend(modules)
        ### END SOLUTION

    def __len__(self):
        ### BEGIN SOLUTION
        return len(self._modules)
        ### END SOLUTION

    def __iter__(self):
        ### BEGIN SOLUTION
        return iter(self._modules.values())
        ### END SOLUTION

    def __getitem__(self, index):
        ### BEGIN SOLUTION
        found = list(self)[index]
        return MyModuleList(found) if isinstance(index, slice) else found
        ### END SOLUTION

    def __setitem__(self, index, module):
        ### BEGIN SOLUTION
        setattr(self, list(self._modules)[index], module)
        ### END SOLUTION

    def __delitem__(self, index):
        ### BEGIN SOLUTION
        modules = list(self)
        del modules[index]
        self._modules.clear()
        self.extend(modules)
        ### END SOLUTION

    def append(self, module):
        ### BEGIN SOLUTION
        self.add_module(str(len(self)), module)
        ### END SOLUTION

    def extend(self, modules):
        ### BEGIN SOLUTION
        for module in modules:
            self.append(module)
        ### END SOLUTION

    def insert(self, index, module):
        ### BEGIN SOLUTION
        modules = [*self]
        modules[index:index] = [module]
        self._modules.clear()
        self.extend(modules)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_module_list_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("my_module_list", MyModuleList)

# %% [markdown]
# {{hints my_module_list}}

# %% [markdown]
# ## One layer, three names
#
# Python multiplies lists, and it does not copy what is in them. Three layers of 2 · 2 + 2 = 6 numbers should make 18.
# Predict what the shorter spelling makes.

# %%
predict("ch06-multiplied")

# %% [markdown]
# A comprehension, and a multiplied list. Look at the counts, and at the names: which of the three is missing in the second?

# %%
three = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
multiplied = nn.ModuleList([nn.Linear(2, 2)] * 3)
for layers in (three, multiplied):
    print(sum(p.numel() for p in layers.parameters()), [name for name, _ in layers.named_parameters()])
print("lengths:", len(three), len(multiplied), "| keys in the file:", len(multiplied.state_dict()))

# %% [markdown]
# The length is right, the file even has six keys, and there is one layer. Sharing weights can be what you want; then it
# is called tying. Here it is an accident, and `parameters()` is where it shows. A comprehension calls `nn.Linear` three
# times; the star calls it once.
#
# ## A layer that adds
#
# A Sequential hands on what a layer gives, and forgets what it was given. In a **residual** stack each layer adds to its
# input: `x + layer(x)`. Follow one number through five layers that each multiply by 0.1. Without the sum, 0.1⁵ is left;
# with it, each step multiplies by 1.1.

# %%
tenth = nn.Linear(1, 1, bias=False)
nn.init.constant_(tenth.weight, 0.1)
plain, residual = one.clone().requires_grad_(True), one.clone().requires_grad_(True)
x, y = plain, residual
for _ in range(5):
    x, y = tenth(x), y + tenth(y)
(x + y).backward()
print(f"values:    plain {x.item():.5f}, residual {y.item():.5f}")
print(f"gradients: plain {plain.grad.item():.5f}, residual {residual.grad.item():.5f}")

# %% [markdown]
# The same factor holds on the way back: the gradient of the plain stack is a hundred thousandth, that of the other is
# more than 1, because the sum has a road on which nothing is multiplied. This is how stacks of a hundred layers are
# trained.
#
# The sum needs the input of each layer, and that is what a Sequential forgets; so you write the loop, over a ModuleList. A
# first version, with five lines of its own:


# %%
class Adding(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


print(Adding(64, 3)(torch.ones(2, 64)).shape)

# %% [markdown]
# In the stack that you will write, each step first normalises. `nn.LayerNorm` shifts and scales every row to mean 0 and
# variance 1, without any running statistics, so it is the same in both modes. Look at a row you can do by hand: 1 and 3
# have mean 2 and standard deviation 1.

# %%
norm = nn.LayerNorm(2)
print([round(number, 2) for number in norm(torch.tensor([[1.0, 3.0]]))[0].tolist()])
print([(name, tuple(p.shape)) for name, p in norm.named_parameters()], list(norm.buffers()))

# %% [markdown]
# Normalising only what goes into the layer, `x + layer(relu(norm(x)))`, leaves the road of the sum untouched. It is called
# pre-norm, and you will meet it again in the transformer block of chapter 7.
#
# ### The values between
#
# With a loop of your own you can keep what lies between the layers. There is one way to spoil it. `x += …` changes the
# tensor that came in, and the entries of your list are all that tensor. Look at what is left of the 1 and the 2.

# %%
x = torch.tensor([1.0])
values = [x]
for _ in range(2):
    x += x
    values.append(x)
print("in place:   ", [value.item() for value in values])
x = torch.tensor([1.0])
values = [x]
for _ in range(2):
    x = x + x
    values.append(x)
print("new tensors:", [value.item() for value in values])

# %% [markdown]
# The caller's tensor was overwritten as well. With gradients the same line often raises, because a layer had saved the value
# for the way back; under `torch.no_grad()` it is silent. And `detach()` on a kept value would cut it off: right for
# looking, wrong for anyone who wants to put a loss on it.

# %% [markdown]
# {{card residual_stack}}


# %% nbgrader={"grade": false, "grade_id": "residual_stack", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ResidualStack(nn.Module):
    def __init__(self, features, depth):
        super().__init__()
        ### BEGIN SOLUTION
        self.norms = nn.ModuleList(nn.LayerNorm(features) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(depth))
        ### END SOLUTION

    def forward(self, x, return_all=False):
        ### BEGIN SOLUTION
        values = [x]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(torch.relu(norm(x)))
            values.append(x)
        return values if return_all else x
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "residual_stack_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("residual_stack", ResidualStack)

# %% [markdown]
# {{hints residual_stack}}

# %% [markdown]
# ## A head by name
#
# One backbone, several heads, and the caller says which: that is what `nn.ModuleDict` is for. Many models
# look like this. Look at the two shapes, and at the names.


# %%
class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(128, 64)
        self.heads = nn.ModuleDict({"classify": nn.Linear(64, 10), "regress": nn.Linear(64, 1)})

    def forward(self, x, task):
        return self.heads[task](torch.relu(self.backbone(x)))


model = TwoHeads()
print(model(torch.ones(2, 128), "classify").shape, model(torch.ones(2, 128), "regress").shape)
print([name for name, _ in model.named_parameters()][2:])

# %% [markdown]
# It keeps the order of insertion and knows `keys`, `items`, `update`, `pop` and `in`. It is no dict, though: its keys become
# names of children, and chapter 1 showed which names a module refuses. Look at what each line runs into.

# %%
attempts = {
    "a task that is not there": lambda: model(torch.ones(1, 128), "weather"),
    "get": lambda: model.heads.get("classify"),
    "a key with a dot": lambda: nn.ModuleDict({"v1.0": nn.ReLU()}),
    "a key that is a number": lambda: nn.ModuleDict({1: nn.ReLU()}),
    "a key that is a method": lambda: nn.ModuleDict({"keys": nn.ReLU()}),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except Exception as error:
        print(name, "|", type(error).__name__, error.args[0])

# %% [markdown]
# An unknown task is a KeyError, and that is good: numbers from another head would be worse. A choice by name is also a
# choice at run time. It works wherever Python runs your `forward`; when a model is scripted or exported, as in chapter 8,
# the name is refused or fixed.
#
# ## A head that comes later
#
# A dict can grow. A model was converted to float64, an optimizer holds its parameters, and now a task is added. Predict
# what the new head needs.

# %%
predict("ch06-later")

# %% [markdown]
# The new head is registered at once, and yet it differs from the others in two ways. Look at its dtype, and at whether the
# optimizer knows it.

# %%
model = TwoHeads().double()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.heads["rank"] = nn.Linear(64, 3)
weight = model.heads["rank"].weight
held = [id(p) for group in optimizer.param_groups for p in group["params"]]
print("registered:", "heads.rank.weight" in model.state_dict())
print("dtype:", weight.dtype, "| known to the optimizer:", id(weight) in held)

# %% [markdown]
# `double()` converted what was there then; the optimizer took what was there then. The head you make yourself, so ask a
# layer that was converted for its dtype and its device, `like.weight.dtype` and `like.weight.device`. The optimizer has
# `add_param_group` for the rest. Whoever builds all heads anew instead throws away what they have learned.

# %% [markdown]
# {{card multi_task}}


# %% nbgrader={"grade": false, "grade_id": "multi_task", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MultiTask(nn.Module):
    def __init__(self, in_features, hidden, tasks):
        super().__init__()
        ### BEGIN SOLUTION
        self.backbone = nn.Linear(in_features, hidden)
        self.heads = nn.ModuleDict({task: nn.Linear(hidden, size) for task, size in tasks.items()})
        ### END SOLUTION

    def forward(self, x, task):
        ### BEGIN SOLUTION
        return self.heads[task](torch.relu(self.backbone(x)))
        ### END SOLUTION

    def add_task(self, task, size):
        ### BEGIN SOLUTION
        if task in self.heads:
            raise KeyError(f"there is a head for {task} already")
        weight = self.backbone.weight
        self.heads[task] = nn.Linear(weight.shape[0], size, device=weight.device, dtype=weight.dtype)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "multi_task_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("multi_task", MultiTask)

# %% [markdown]
# {{hints multi_task}}

# %% [markdown]
# ## Single weights in a row (optional)
#
# Two containers are left. A list of bare parameters has the same trouble as a list of layers, and `nn.ParameterList` and
# `nn.ParameterDict` are the remedy. Look at what becomes of a plain tensor in one, and of a number.

# %%
model = nn.Module()
model.lost = [nn.Parameter(torch.ones(2))]
model.kept = nn.ParameterList([torch.ones(2), 7])
model.named = nn.ParameterDict({"scale": torch.ones(3)})
print([name for name, _ in model.named_parameters()])
print([type(item).__name__ for item in model.kept], "| in the file:", list(model.kept.state_dict()))

# %% [markdown]
# A tensor becomes a parameter; anything else is kept as it is, unregistered, and so is not in the file. For buffers there is
# no such list. Give each a name of its own.

# %%
model = nn.Module()
for number, size in enumerate((2, 3)):
    model.register_buffer(f"mask_{number}", torch.ones(size))
print([name for name, _ in model.named_buffers()])

# %% [markdown]
# ## Which container when
#
# | you have | take | because |
# |---|---|---|
# | layers in a fixed order, nothing else | `nn.Sequential` | no `forward` to write, slices for free |
# | layers, and a loop with skips, stops or extra inputs | `nn.ModuleList` | you write the loop |
# | layers chosen by name at run time | `nn.ModuleDict` | the name is in the file as well |
# | single weights | `nn.ParameterList`, `nn.ParameterDict` | a list of parameters is as invisible as a list of layers |
# | one layer | an attribute | nothing is simpler |
# | layers that must stay out of the file and the optimizer | a plain list, on purpose | say so in a comment |
#
# `print` draws the tree of modules for all of them, with the names in round brackets. A bare parameter or a buffer does not
# appear in it, so what is missing there is not missing in training: ask `named_parameters()` for that.
#
# A habit that pays: a Sequential for small blocks whose inside interests nobody, and a `forward` of your own where you will
# want to look.
#
# ## Every part your own
#
# You have written a linear layer in chapter 2, a dropout in chapter 3, and a ReLU and a Sequential today. Put them
# together. **Paste your `MyLinear` and your `MyDropout` at the top of the next cell.** As long as you have not, torch's own
# stand in for them, and the cell says so.

# %%
# Paste MyLinear (chapter 2) and MyDropout (chapter 3) here, above the next line.
own = {name: globals().get(name) for name in ("MyLinear", "MyDropout")}
Linear, Dropout = own["MyLinear"] or nn.Linear, own["MyDropout"] or nn.Dropout
print("linear layer from:", Linear.__name__, "| dropout from:", Dropout.__name__)

# %% [markdown]
# The task is the valley of chapter 0, the absolute value. The function builds the network in the container you name, from
# the parts you name, and trains it for 300 steps. Look at its first line: nothing in it needs to be torch's.

# %%
x = torch.linspace(-2, 2, 40).unsqueeze(1)


def train_valley(row, linear, bend, dropout):
    net = row(linear(1, 16), bend(), dropout(0.05), linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(300):
        loss = (net(x) - x.abs()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net, losses


# %% [markdown]
# Train it. Look at whether the loss has fallen below a tenth of where it began, and at the names: they are those of torch's
# containers, because yours register in the same way. An exercise that is still to be written is named instead.

# %%
torch.manual_seed(0)
try:
    mine, losses = train_valley(MySequential, Linear, MyReLU, Dropout)
    print("loss fell below a tenth:", losses[-1] < losses[0] / 10)
    print([name for name, _ in mine.named_parameters()])
except NotImplementedError as missing:
    mine = None
    print("still to be written:", missing)

# %% [markdown]
# The last proof is a file. What your network has learned goes into a network of torch's own parts, by name, and in eval mode
# both must give the same answers. Look at the two lines.

# %%
if mine is not None:
    theirs = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Dropout(0.05), nn.Linear(16, 1))
    print(theirs.load_state_dict(mine.state_dict()))
    print("same answers:", torch.allclose(mine.eval()(x), theirs.eval()(x), atol=1e-6))

# %% [markdown]
# Container, layer, activation and dropout, written by you, trained by torch's optimizer, and loaded by torch's own classes
# without a word of complaint. There was no magic in them: a registry, a loop, and some care at the ends of the number line.
#
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch06-skips")

# %% [markdown]
# The second is about choosing by name.

# %%
quiz("ch06-three-heads")

# %% [markdown]
# The third is the model of the first page, in other clothes.

# %%
quiz("ch06-cut")

# %% [markdown]
# The last one is about a loss that turned into nan.

# %%
quiz("ch06-nan")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | a network rebuilt from `children()` gives other numbers | functions called in `forward`, the order of registration, a layer that stands twice |
# | `TypeError: … is not a Module subclass` | a function, a list or a class without parentheses in a Sequential |
# | `'NoneType' object is not callable` inside a Sequential | an empty slot |
# | `ModuleList is missing the required "forward"` | a container that does not run anything was called |
# | fewer parameters than you counted, and the right length | one layer under several names: `[layer] * n`, `dict.fromkeys` |
# | unexpected keys with other numbers after a refactoring | a layer deleted or inserted in a numbered container |
# | keys with one word too many, `layers.0.weight` | a container inside the container |
# | a replaced layer still runs | a second list beside the registry |
# | loss turns into nan although all values look fine | an activation whose gradient overflows: test it at ±100 |
# | a nan upstream that disappears | a comparison that answers no to nan |
# | a unit that never learns where its input is exactly 0 | the gradient at zero: `abs`, `sign`, `clamp` |
# | error about two dtypes right after a head was added | the new head was made after `.to()` |
# | a new head that does not learn | the optimizer was built before it came |
#
# ## What to read next
#
# - `torch/nn/modules/container.py`: all five containers in one file; you have now written the better part of two.
# - `torch/nn/modules/activation.py`: how many activations there are, and how short each class is.
# - He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", for the sum and what it made possible.
# - Chapter 7, where you walk a whole model, with the shapes that flow through it.
