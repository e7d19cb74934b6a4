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
# # Chapter 1 · The anatomy of a module
#
# In chapter 0 a plain list hid its layers, and `nn.ModuleList` did not. In this chapter you find out who decides. You
# open an empty module and look at everything it holds, read the one method that sorts what you assign, follow it line
# by line while it runs, and then write the class yourself, until torch's own behaviour cannot tell the two apart.
#
# Plan for three and a half hours: one and a half of reading and predicting, two for the exercises. The second is the
# longest of the first half of this course, and the one that pays most.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import sys

import torch
from torch import nn

from autograder import check, predict, quiz, recall
from simulations import ModuleStructure

# %% [markdown]
# ## Four lines, three messages, one silence
#
# You have probably met this one: a class whose `__init__` forgets `super().__init__()`. What it says depends on what
# its first line assigns. The next cell builds such a class for four values: a layer, a parameter, a buffer (a
# tensor that is kept and saved with the model, and not trained), and a plain tensor. Look at the three messages, and at
# the line that has none.


# %%
def forgetful(value):
    class Net(nn.Module):
        def __init__(self):
            self.thing = value  # super().__init__() should have come first

    return Net()


one = torch.ones(1)
for words, value in {
    "layer": nn.ReLU(),
    "parameter": nn.Parameter(one),
    "buffer": nn.Buffer(one),
    "tensor": one,
}.items():
    try:
        forgetful(value)
        print(f"{words:9} | no error")
    except AttributeError as error:
        print(f"{words:9} |", error)

# %% [markdown]
# The silent one is the worst. A plain tensor is accepted, and the module that you get is an empty shell. It breaks
# later, with a message about something that you never wrote. Look at the name in it.

# %%
try:
    forgetful(one)(one)
except AttributeError as error:
    print("AttributeError |", error)

# %% [markdown]
# One assignment, four outcomes: somebody reads the type of every value that you assign. And that somebody needs things
# which only `__init__` creates. By the end of the chapter you will be able to say, for each of the four, which line of
# torch spoke, and why the fourth stayed silent.
#
# Before that, three questions about chapter 0, because this chapter stands on it. Answer from memory; a wrong guess
# costs nothing.

# %%
recall("ch01")

# %% [markdown]
# ## What an empty module holds
#
# Many texts say that a module is an object with four dictionaries: parameters, buffers, children, forward hooks. That
# is a good first sentence and a wrong second one. Before you count, guess.

# %%
predict("ch01-dictionaries")

# %% [markdown]
# `vars(thing)` shows an object's own attributes, the contents of its `__dict__`. Here they are for a module fresh from
# `__init__`, sorted by type. Look at how many of the names you have seen before.

# %%
inside = vars(nn.Module())
for kind in ("dict", "OrderedDict", "set", "bool", "NoneType"):
    names = [name for name, value in inside.items() if type(value).__name__ == kind]
    print(f"{len(names):2} {kind:12}", ", ".join(names[:3]), "…" if len(names) > 3 else "")
print(len(inside), "attributes in all")

# %% [markdown]
# Three **registries**, eleven tables for hooks, one set, two flags. The registries are this chapter. The hook tables
# belong to chapter 4: functions that run before or after something, each in a table of its own. The flag `training`
# says whether the module is in training or in eval mode; the other flag is for hooks as well. The set remembers which
# buffers are not to be saved.
#
# The three registries are ordinary dicts, by name. Look at what three of torch's own layers keep in them: `nn.Linear`
# with and without a bias, `nn.BatchNorm1d`, which normalises its inputs (chapter 3 opens it), and `nn.Sequential`, which
# calls its children one after the other.

# %%
for layer in (nn.Linear(2, 3), nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3), nn.Sequential(nn.ReLU())):
    print(type(layer).__name__)
    for registry in ("_parameters", "_buffers", "_modules"):
        kept = [name if value is not None else f"{name} (None)" for name, value in vars(layer)[registry].items()]
        print(f"    {registry:12}", ", ".join(kept))

# %% [markdown]
# Two things deserve a second look. The linear layer without a bias still has the name `bias`: a **slot** that is kept
# empty and holds `None`. Every registry may hold such slots. And BatchNorm has tensors under `_buffers`: they belong to
# the module and are saved with it, and `parameters()` never lists them. Chapter 3 is about those.
#
# A buffer is not defined by having no gradient, by the way. It may require one and receive it. What makes it a buffer
# is the registry it lies in.

# %%
module = nn.Module()
module.register_buffer("offset", torch.zeros(1, requires_grad=True))
(module.offset * 3).sum().backward()
print(module.offset.grad, list(module.parameters()))

# %% [markdown]
# ## Do we need a class at all?
#
# You can write a linear layer with three dicts and a function. `x @ W.T + b` works on the last axis of whatever you
# pass, and so does `nn.Linear`. Look at whether the shapes agree, and at where the gradient arrives.

# %%
raw = {
    "_parameters": {"weight": torch.ones(3, 2, requires_grad=True), "bias": torch.zeros(3, requires_grad=True)},
    "_buffers": {},
    "_modules": {},
}


def forward(module, x):
    return x @ module["_parameters"]["weight"].T + module["_parameters"]["bias"]


for shape in ((2,), (4, 2), (5, 4, 2)):
    print(forward(raw, torch.ones(shape)).shape == nn.Linear(2, 3)(torch.ones(shape)).shape, end=" ")
forward(raw, torch.ones(4, 2)).sum().backward()
print(raw["_parameters"]["weight"].grad.shape)

# %% [markdown]
# It computes and it learns: autograd needs no module. What is missing starts when you nest such dicts. Somebody has to
# collect the tensors of all levels for the optimizer, move them together, save them under names, switch them to eval
# mode. A network is a tree of parts, and each of these jobs is a walk over that tree. So the question of this chapter
# is: **how does the walk know what belongs to the module?**
#
# ## Four designs under one probe
#
# There are several answers. Here are three small ones, to be compared with torch's. In the first, somebody types the
# list by hand, for this very model. It is how chapter 0's micrograd does it.


# %%
class ByHand:
    def parameters(self):
        return [self.first.w, *(cell.w for cell in self.stack)]


# %% [markdown]
# In the second, the class watches assignments. What is a parameter, or a module of its own kind, goes into a dict; the
# rest stays ordinary. `__getattr__` is what Python calls when a name is not found in the usual places. The dict itself
# is stored past all that, with Python's plain `object.__setattr__`: the class's own would already ask for it.


# %%
class ByAssignment:
    def __init__(self):
        object.__setattr__(self, "found", {})

    def __setattr__(self, name, value):
        registers = isinstance(value, (nn.Parameter, ByAssignment))
        (self.found if registers else vars(self))[name] = value

    def __getattr__(self, name):
        return vars(self)["found"][name]

    def parameters(self):
        for value in self.found.values():
            yield from [value] if isinstance(value, nn.Parameter) else value.parameters()


# %% [markdown]
# In the third, nothing is watched. Whoever asks for the parameters searches everything that the object holds, lists and
# dicts included. The library tinygrad works that way.


# %%
class BySearch:
    def parameters(self):
        return search(vars(self))


def search(thing):
    if isinstance(thing, nn.Parameter):
        yield thing
    inside = vars(thing) if isinstance(thing, BySearch) else thing
    if isinstance(inside, (list, dict)):
        for item in inside.values() if isinstance(inside, dict) else inside:
            yield from search(item)


# %% [markdown]
# Now one model, built on each of them in turn. Its cells hold a single number, so that you can recognise each parameter
# by its value: cell 1 is an attribute, cells 2 and 3 lie in a plain list.


# %%
def build(base):
    class Cell(base):
        def __init__(self, number):
            super().__init__()
            self.w = nn.Parameter(torch.tensor(float(number)))

    class Model(base):
        def __init__(self):
            super().__init__()
            self.first, self.stack = Cell(1), [Cell(2), Cell(3)]

    return Model(), Cell


# %% [markdown]
# The probe does five things to the model, one after the other, and after each it notes the numbers that `parameters()`
# gives. Read the five lines of `steps` before you go on.


# %%
def probe(base):
    model, Cell = build(base)
    steps = {
        "as built": lambda: None,
        "late = Cell(4)": lambda: setattr(model, "late", Cell(4)),
        "first = Cell(5)": lambda: setattr(model, "first", Cell(5)),
        "again = late": lambda: setattr(model, "again", model.late),
        "teacher = [Cell(9)]": lambda: setattr(model, "teacher", [Cell(9)]),
    }
    seen = {}
    for words, step in steps.items():
        step()
        seen[words] = [int(p) for p in model.parameters()]
    return seen


# %% [markdown]
# Take a sheet of paper and draw the grid: five rows, four columns (by hand, by assignment, by search, `nn.Module`).
# Fill in all twenty fields. The teacher, by the way, is in a list on purpose: it must not be trained. Then put two of
# your twenty on record.

# %%
predict("ch01-grid-late")

# %% [markdown]
# The other field is about one layer that has two names.

# %%
predict("ch01-grid-again")

# %% [markdown]
# And here is the grid. Compare all twenty fields with your sheet, and mark those that surprise you.


# %%
def grid(designs):
    columns = {name: probe(base) for name, base in designs.items()}
    print(" " * 20, *(f"{name:20}" for name in columns))
    for words in next(iter(columns.values())):
        print(f"{words:20}", *(f"{str(column[words]):20}" for column in columns.values()))


designs = {"by hand": ByHand, "by assignment": ByAssignment, "by search": BySearch, "nn.Module": nn.Module}
grid(designs)

# %% [markdown]
# No column is perfect:
#
# - **By hand** sees the list, because its author did. It never hears of the late layer. What is typed must be retyped.
# - **By assignment** follows every change of an attribute, and is blind to lists. It counts the layer with two names
#   twice: an optimizer would step it twice.
# - **By search** finds everything, the teacher included. You can no longer keep a module without training it. It counts
#   twice as well.
# - **`nn.Module`** is the second design with one repair: each object counts once. The price is chapter 0's bug, and the
#   gain is that a list is a way to say "not mine".
#
# So torch decides at the moment of assignment. Let us watch it do that.

# %% [markdown]
# ## What an assignment goes through
#
# When you write `self.fc = nn.Linear(10, 5)`, Python calls `type(self).__setattr__(self, "fc", …)`. `nn.Module` has one
# of its own. It is long, and its backbone is five questions. Here they are, read from the copy of torch that is
# installed on your machine. Which of them ask about the value, and which about the name?

# %%
source = inspect.getsource(nn.Module.__setattr__)
questions = [line.strip() for line in source.splitlines() if line.strip().startswith(("if isinstance(value", "elif"))]
print("\n".join(questions[:5]))

# %% [markdown]
# They are asked in this order, and the first yes wins. Nobody asks whether a value *looks like* a parameter: the test
# is `isinstance`. Reading is one thing, watching is better. The helper below runs an action and prints the lines of a
# function that really ran, in order (questions, errors and the storing itself; the rest is left out for brevity).
# You need not know how it listens (`sys.settrace` is what debuggers use), only what it prints.

# %%
STEPS = ("if ", "elif ", "raise ", "return ", "remove_from(", "self.", "super()", "modules[")


def walk(function, action):
    ran = []

    def look(frame, event, argument):
        if frame.f_code is function.__code__:
            if event == "line":
                ran.append(frame.f_lineno)
            return look

    end = []
    sys.settrace(look)
    try:
        action()
    except Exception as error:
        end = [f"{type(error).__name__} | {error}"]
    finally:
        sys.settrace(None)
    lines, first = inspect.getsourcelines(function)
    path = (lines[number - first].strip() for number in dict.fromkeys(ran))
    print(*(line for line in path if line.startswith(STEPS)), *end, sep="\n")


# %% [markdown]
# First, a parameter under a fresh name. The first question says yes at once. Look at what happens between that and the
# storing.

# %%
layer = nn.Module()
walk(nn.Module.__setattr__, lambda: setattr(layer, "w", nn.Parameter(torch.ones(1))))

# %% [markdown]
# `remove_from` takes the name out of every other home, before `register_parameter` stores it: a name lives in one place
# only. Now a plain tensor under a fresh name. It has to fall through all five questions.

# %%
walk(nn.Module.__setattr__, lambda: setattr(layer, "t", torch.ones(1)))
print("t" in vars(layer), list(layer._buffers))

# %% [markdown]
# Five times no, and Python's own `__setattr__` stores it in `__dict__`. A tensor never becomes a buffer by itself:
# somebody has to ask, with `register_buffer` or `nn.Buffer`. Now the same kind of value, a plain tensor, under a name
# that is taken by a parameter. Decide first.

# %%
predict("ch01-tensor-over-parameter")

# %% [markdown]
# Follow the walk to the line that decides, and note that it asks for the name.

# %%
walk(nn.Module.__setattr__, lambda: setattr(layer, "w", torch.zeros(1)))
print("still there:", layer.w)

# %% [markdown]
# An error, and a kind one: had the tensor been stored, `forward` would use it, and the optimizer would go on stepping
# the old parameter, which nobody reads any more. `None` is welcome there, though. The name stays where it was, as an
# empty slot.

# %%
layer.w = None
print(layer._parameters, "w" in vars(layer))

# %% [markdown]
# The third kind of name is a buffer's. A plain tensor under it is just what a running statistic needs, so it is let in.
# Look at the fifth question of the walk: this time the part after `or` says yes. What follows it checks the value.

# %%
layer.register_buffer("mean", torch.zeros(1))
walk(nn.Module.__setattr__, lambda: setattr(layer, "mean", torch.ones(1)))
print(layer._buffers)

# %% [markdown]
# Here is the whole of it as a table. Rows are what you assign, columns what the name stands for at that moment.
#
# | value | fresh or plain name | a parameter's name | a child's name | a buffer's name |
# |---|---|---|---|---|
# | `nn.Parameter` | `_parameters` | `_parameters` | `_parameters` | `_parameters` |
# | `nn.Module` | `_modules` | `TypeError` | `_modules` | `_modules` |
# | `nn.Buffer` | fresh: `_buffers`, plain: `KeyError` | `TypeError` | `TypeError` | `_buffers` |
# | plain tensor | `__dict__` | `TypeError` | `TypeError` | `_buffers` |
# | `None` | `__dict__` | empty slot | empty slot | empty slot |
# | anything else | `__dict__` | `TypeError` | `TypeError` | `TypeError` |
#
# The table is not symmetrical: a parameter may replace a child, a child may not replace a parameter. You can read from
# the order of the five questions why. Check both with a fresh module. (The `KeyError` is the subject of a section
# below.)

# %%
corner = nn.Module()
corner.x = nn.ReLU()
corner.x = nn.Parameter(torch.ones(1))
print("a parameter over a child:", list(corner._parameters), list(corner._modules))
try:
    corner.x = nn.ReLU()
except TypeError as error:
    print("a child over a parameter: TypeError |", error)

# %% [markdown]
# The figure below replays what you just read. Each step is one statement on a real Module: the lines of `__setattr__`
# that ran for it, and the registry in which the value then lies. Open "every detail" to walk line by line, and take the
# second tour for names that are taken.

# %%
ModuleStructure()

# %% [markdown]
# ### The four lines again
#
# Now the opening. `self.__dict__.get("_parameters")` gives `None` when `__init__` has not run, and every branch that
# wants to store looks at that first. A plain tensor wants nothing from the registries. Watch it pass.

# %%
shell = nn.Module.__new__(nn.Module)  # an object of the class whose __init__ never ran
walk(nn.Module.__setattr__, lambda: setattr(shell, "thing", torch.ones(1)))
print(vars(shell))

# %% [markdown]
# So the rule is: `super().__init__()` before the first registration. It is not true, by the way, that every module
# needs an `__init__`. One without state needs only `forward`, and one that is never called does not need that either.


# %%
class Twice(nn.Module):
    def forward(self, x):
        return 2 * x


print(Twice()(torch.ones(1)))
try:
    nn.Module()(torch.ones(1))
except NotImplementedError as error:
    print("NotImplementedError |", error)

# %% [markdown]
# ### Names that are refused
#
# `register_parameter` and `register_buffer` look at the name itself, too. Here are the conditions of the first. Which
# kind of name would make the paths of a big model ambiguous?

# %%
source = inspect.getsource(nn.Module.register_parameter)
print("\n".join(line.strip() for line in source.splitlines() if " name" in line and line.strip().startswith("elif")))

# %% [markdown]
# `hasattr(self, name)` is asked after the other homes were cleared, so that only names of the class itself are left:
# `forward`, `train`, `type` and the like. For a buffer nothing is cleared, so that a plain attribute stands in its way
# too. Compare the two lines over `plain`, and then look at the last: assigning a *module* checks no name at all.


# %%
def attempt(words, action):
    try:
        action()
        print(f"{words:30} accepted")
    except KeyError as error:
        print(f"{words:30} KeyError | {error.args[0]}")


odd, weight = nn.Module(), nn.Parameter(torch.ones(1))
odd.plain = 3
attempt("a parameter called left.right", lambda: setattr(odd, "left.right", weight))
attempt("a parameter called forward", lambda: setattr(odd, "forward", weight))
attempt("nn.Buffer over plain", lambda: setattr(odd, "plain", nn.Buffer(torch.ones(1))))
attempt("a parameter over plain", lambda: setattr(odd, "plain", weight))
attempt("a module called left.right", lambda: setattr(odd, "left.right", nn.ReLU()))

# %% [markdown]
# When is `register_parameter` worth calling yourself? When the name is only known at run time, or when you want to keep
# a slot empty: `register_parameter("bias", None)`. For the rest, assignment does it for you.
#
# ## What three branches forget
#
# You will often see `__setattr__` summed up in three branches: parameter, module, everything else. Here is that
# summary as a class. One question about it, before you run anything.


# %%
class ThreeBranches(nn.Module):
    def __setattr__(self, name, value):
        if isinstance(value, nn.Parameter):
            self._parameters[name] = value
        elif isinstance(value, nn.Module):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)


# %% [markdown]
# A buffer is registered with 0, and then 1 is assigned to its name.

# %%
predict("ch01-three-branches")

# %% [markdown]
# The same two lines, once with the summary and once with the real thing. Look at what is seen, and at what is saved.

# %%
for base in (ThreeBranches, nn.Module):
    module = base()
    module.register_buffer("mean", torch.zeros(1))
    module.mean = torch.ones(1)
    print(f"{base.__name__:14} sees {module.mean.item()}, saves {module._buffers['mean'].item()}")

# %% [markdown]
# Two tensors share one name. Python finds the one in `__dict__` first, the file gets the other, and no error is ever
# raised. The same happens to a `None` that is replaced later: it stays in `__dict__` and hides the module. Look.

# %%
for base in (ThreeBranches, nn.Module):
    module = base()
    module.head = None
    module.head = nn.ReLU()
    print(f"{base.__name__:14} head is {module.head}, children: {list(module._modules)}")

# %% [markdown]
# So the missing branches are not details: they keep each name in one place. You now have everything for the first
# exercise, which is that table as a function.

# %% [markdown]
# {{card route}}


# %% nbgrader={"grade": false, "grade_id": "route", "locked": false, "schema_version": 3, "solution": true, "task": false}
def route(module, name, value):
    ### BEGIN SOLUTION
    homes = vars(module)
    parameters, children, buffers = (homes.get(key) for key in ("_parameters", "_modules", "_buffers"))
    ready = parameters is not None
    refused = not name or "." in name or hasattr(type(module), name)
    if isinstance(value, (nn.Parameter, nn.Module, nn.Buffer)) and not ready:
        raise AttributeError(f"{name} is assigned before Module.__init__")
    if isinstance(value, nn.Parameter):
        if refused:
            raise KeyError(name)
        return "_parameters"
    if ready and name in parameters:
        if value is not None:
            raise TypeError(f"{name} is a parameter")
        return "_parameters"
    if isinstance(value, nn.Module):
        return "_modules"
    if ready and name in children:
        if value is not None:
            raise TypeError(f"{name} is a child")
        return "_modules"
    if ready and name in buffers:
        if value is not None and not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} is a buffer")
        return "_buffers"
    if isinstance(value, nn.Buffer):
        if refused or name in homes:
            raise KeyError(name)
        return "_buffers"
    return "__dict__"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "route_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("route", route)

# %% [markdown]
# {{hints route}}

# %% [markdown]
# ## The other half: reading
#
# A registered name is not in `__dict__`. When you read `self.fc`, Python looks in the usual places, finds nothing, and
# calls `__getattr__` as a last resort. Torch's version searches the registries. Look at the order, and at the one
# thing that it does not do: it never writes `self._parameters`.

# %%
layer = nn.Linear(2, 2)
print("weight" in vars(layer))
walk(nn.Module.__getattr__, lambda: layer.wieght)

# %% [markdown]
# Every name that nobody has ends in an `AttributeError`, typing mistakes included. Some home-made modules return `None`
# there. Then `hasattr` is always true, and the mistake surfaces far away, as "NoneType is not callable".
#
# Why `self.__dict__["_parameters"]`, where `self._parameters` would be shorter? Because a missing name leads back to
# `__getattr__`. Here is the short version, asked before `__init__` has run. `copy.deepcopy` does just that: it makes an
# empty object and asks it questions.


# %%
class Endless:
    def __init__(self):
        self._parameters = {}

    def __getattr__(self, name):
        if name in self._parameters:
            return self._parameters[name]
        raise AttributeError(name)


try:
    copy.deepcopy(Endless())
except RecursionError as error:
    print("RecursionError |", str(error)[:32])

# %% [markdown]
# Being the last resort has a side effect. A property whose code raises an `AttributeError` also counts as "not found".
# Predict which name the message will complain about.

# %%
predict("ch01-property")

# %% [markdown]
# The property exists. What is missing is `typo`, which it reads. Look at what you are told.


# %%
class Featured(nn.Module):
    @property
    def feature(self):
        return self.typo


try:
    Featured().feature
except AttributeError as error:
    print("AttributeError |", error)

# %% [markdown]
# If torch denies an attribute that you can see in the class, look inside the property. To find the culprit, call its
# function by hand: `Featured.feature.fget(Featured())` names the right one.
#
# Deleting completes the set. `del module.name` calls `__delattr__`, which looks for the home that holds the name. Look
# at the last lines: what is in no registry is left to Python, and a name that nobody has ends in its `AttributeError`.

# %%
print(inspect.getsource(nn.Module.__delattr__))

# %% [markdown]
# ## At any time, with one catch
#
# Nothing in `__setattr__` asks whether `__init__` is still running. A layer that is assigned later is as registered as
# any other, by attribute, by `setattr` or by `add_module`. What does not follow is whoever took a list earlier.

# %%
predict("ch01-late-optimizer")

# %% [markdown]
# An optimizer is built, then two layers are added. Look at what the model lists and at what the optimizer holds.


# %%
def held(optimizer):
    return sum(len(group["params"]) for group in optimizer.param_groups)


net = nn.Module()
net.first = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.second = nn.Linear(2, 2)
net.add_module("third", nn.Linear(2, 2))
print(len(list(net.parameters())), "in the model,", held(optimizer), "in the optimizer")
optimizer.add_param_group({"params": [*net.second.parameters(), *net.third.parameters()]})
print("after add_param_group:", held(optimizer))

# %% [markdown]
# There are ways around `__setattr__`, and each of them leaves the layer unregistered. A list is the one that you know.
# Look at the other three: writing into `__dict__`, calling `object.__setattr__`, and an attribute of the class.


# %%
class OnTheClass(nn.Module):
    shared = nn.Linear(1, 1)


around = OnTheClass()
vars(around)["a"] = nn.Linear(1, 1)
object.__setattr__(around, "b", nn.Linear(1, 1))
around.c = [nn.Linear(1, 1)]
print(list(around.named_parameters()))

# %% [markdown]
# ## One walk, every answer
#
# Registration pays off here: with everything in three dicts per module, each question about the whole model is one
# walk. Programmers call the pattern a composite: a whole is asked in the same way as a part. The walk is
# `named_modules`. Read its last lines: what does it do before the children, and what is `memo` for?

# %%
source = inspect.getsource(nn.Module.named_modules).splitlines()
start = next(number for number, line in enumerate(source) if "if memo is None" in line)
print("\n".join(line[8:] for line in source[start:]))

# %% [markdown]
# First the module itself, then its children, each with its path, and whoever was met before is skipped. Here is a tree
# of three levels, with one block under two names. Write down the paths before you run it.


# %%
def leaf(number):
    module = nn.Module()
    module.w = nn.Parameter(torch.tensor([float(number)]))
    return module


net = nn.Module()
net.body = nn.Module()
net.body.left, net.body.right = leaf(1), leaf(2)
net.body.empty = None
net.shared = net.body.left
print([path for path, module in net.named_modules()])

# %% [markdown]
# The empty path is the model itself. `shared` does not appear: it is `body.left`, and that was met. Strictly, then, a
# model is a tree with sharing allowed. `named_parameters` visits these modules and reads the dict of each. Look for the
# two reasons to `continue`.

# %%
source = inspect.getsource(nn.Module._named_members).splitlines()
start = next(number for number, line in enumerate(source) if "for module_prefix" in line)
print("\n".join(line[8:] for line in source[start:]))

# %% [markdown]
# Empty slots are skipped, and so is a tensor that was met under another name. The parameters of a module come before
# those of its children, whatever the order of your assignments. Look at where `late` stands, and at the tied name.

# %%
net.late = nn.Parameter(torch.tensor([3.0]))
net.tied = net.late
print([(path, parameter.item()) for path, parameter in net.named_parameters()])

# %% [markdown]
# The walk reads dicts and asks nobody. A child that overrides `parameters()`, to hide something, is not even consulted.
# Look at the two counts.


# %%
class Secretive(nn.Linear):
    def parameters(self, recurse=True):
        return iter(())


secret = Secretive(1, 1)
print(len(list(secret.parameters())), len(list(nn.Sequential(secret).parameters())))

# %% [markdown]
# ## The flag that travels
#
# `train()` and `eval()` are such a walk, too: they set `training` on the module and on every registered child. It
# happens once. What comes later brings a flag of its own, and what lies in a list is not reached.

# %%
net.hidden = [leaf(4)]
returned = net.eval()
net.newcomer = leaf(5)
print("returns itself:", returned is net)
print({path: module.training for path, module in net.named_modules()}, "| list:", net.hidden[0].training)

# %% [markdown]
# ## A dict of paths
#
# `state_dict()` is the walk that makes a file: each path with its tensor. It differs from `named_parameters()` in three
# ways. Guess the first before you look.

# %%
predict("ch01-shared-keys")

# %% [markdown]
# A small model again: a block under two names, a buffer to be saved, and two that are not. Look at the order of the
# keys, at the shared block, and at what is missing.

# %%
net = nn.Module()
net.block = leaf(1)
net.same = net.block
net.register_buffer("steps", torch.tensor(7))
net.register_buffer("mask", torch.ones(2), persistent=False)
net.table = nn.Buffer(torch.ones(2), persistent=False)
net.scale = nn.Parameter(torch.tensor([2.0]))
state = net.state_dict()
print(list(state))

# %% [markdown]
# Per module: parameters, then buffers, then children. Two differences show. The shared block stands under both of its
# paths, because a file must be readable by a model that does not share. And buffers are in it, except `mask` and
# `table`: they came with `persistent=False`, which is noted in the set that you saw at the beginning. (An `nn.Buffer`
# carries this flag as an attribute, and `__setattr__` passes it on.) Empty slots do not appear.
#
# The third difference: the tensors are detached, they carry no gradient. They are not copies, though. Change the
# parameter in place, and look at the dict that was taken before.

# %%
with torch.no_grad():
    net.scale.fill_(9.0)
print("dict:", state["scale"], "| requires a gradient:", state["scale"].requires_grad)

# %% [markdown]
# Loading goes the other way: `load_state_dict` copies the *values* into the tensors that the module already has. The
# objects stay, and an optimizer that holds them goes on working. Keys that do not match are an error. Look at both.

# %%
scale = net.scale
net.load_state_dict({**state, "scale": torch.tensor([4.0])})
print("same object:", net.scale is scale, "| new value:", scale.item())
try:
    net.load_state_dict({"scale": torch.tensor([4.0])})
except RuntimeError as error:
    print(str(error).splitlines()[1].strip())

# %% [markdown]
# That is a module: three dicts, one door for writing, one for reading, and a walk. Now it is your turn. Write it from
# top to bottom and run the check as often as you like: a method that is still to be written costs only the observations
# that need it.

# %% [markdown]
# {{card mini_module}}


# %% nbgrader={"grade": false, "grade_id": "mini_module", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MiniModule:
    def __init__(self):
        ### BEGIN SOLUTION
        for name, value in (("_parameters", {}), ("_buffers", {}), ("_modules", {}), ("_not_saved", set())):
            object.__setattr__(self, name, value)
        self.training = True
        ### END SOLUTION

    def __setattr__(self, name, value):
        ### BEGIN SOLUTION
        parameters, children, buffers = (vars(self).get(key) for key in ("_parameters", "_modules", "_buffers"))
        if isinstance(value, nn.Parameter):
            self._move(name, value, parameters)
        elif parameters is not None and name in parameters:
            self._fill(name, value, parameters, ())
        elif isinstance(value, MiniModule):
            self._move(name, value, children)
        elif children is not None and name in children:
            self._fill(name, value, children, ())
        elif isinstance(value, nn.Buffer):
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            self._fill(name, value, buffers, torch.Tensor)
        else:
            object.__setattr__(self, name, value)

    def _move(self, name, value, home):
        if home is None:
            raise AttributeError(f"{name} is assigned before MiniModule.__init__() has run")
        for other in (vars(self), self._parameters, self._buffers, self._modules):
            if other is not home:
                other.pop(name, None)
        self._not_saved.discard(name)
        home[name] = value

    def _fill(self, name, value, home, welcome):
        if value is not None and not isinstance(value, welcome):
            raise TypeError(f"{type(value).__name__} cannot take the place of {name}")
        home[name] = value
        ### END SOLUTION

    def __getattr__(self, name):
        ### BEGIN SOLUTION
        for key in ("_parameters", "_buffers", "_modules"):
            registry = vars(self).get(key, {})
            if name in registry:
                return registry[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        ### END SOLUTION

    def __delattr__(self, name):
        ### BEGIN SOLUTION
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._not_saved.discard(name)
                return
        object.__delattr__(self, name)
        ### END SOLUTION

    def register_buffer(self, name, tensor, persistent=True):
        ### BEGIN SOLUTION
        if "_buffers" not in vars(self):
            raise AttributeError(f"{name} is registered before MiniModule.__init__() has run")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute {name!r} already exists")
        self._buffers[name] = tensor
        self._not_saved.discard(name)
        if not persistent:
            self._not_saved.add(name)
        ### END SOLUTION

    def named_modules(self, seen=None, path=""):
        ### BEGIN SOLUTION
        seen = set() if seen is None else seen
        if self in seen:
            return
        seen.add(self)
        yield path, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(seen, f"{path}.{name}" if path else name)
        ### END SOLUTION

    def named_parameters(self):
        ### BEGIN SOLUTION
        return self._members("_parameters")

    def _members(self, key):
        seen = set()
        for path, module in self.named_modules():
            for name, tensor in vars(module)[key].items():
                if tensor is not None and tensor not in seen:
                    seen.add(tensor)
                    yield (f"{path}.{name}" if path else name), tensor
        ### END SOLUTION

    def named_buffers(self):
        ### BEGIN SOLUTION
        return self._members("_buffers")
        ### END SOLUTION

    def state_dict(self, path=""):
        ### BEGIN SOLUTION
        own = {**self._parameters, **{k: b for k, b in self._buffers.items() if k not in self._not_saved}}
        state = {path + name: tensor.detach() for name, tensor in own.items() if tensor is not None}
        for name, child in self._modules.items():
            if child is not None:
                state.update(child.state_dict(f"{path}{name}."))
        return state
        ### END SOLUTION

    def load_state_dict(self, state):
        ### BEGIN SOLUTION
        own = self.state_dict()
        if own.keys() != state.keys():
            raise RuntimeError(f"keys that do not match: {sorted(own.keys() ^ state.keys())}")
        for path, tensor in own.items():
            tensor.copy_(state[path])
        ### END SOLUTION

    def train(self, mode=True):
        ### BEGIN SOLUTION
        for _, module in self.named_modules():
            module.training = mode
        return self
        ### END SOLUTION

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def eval(self):
        return self.train(False)

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


# %% nbgrader={"grade": true, "grade_id": "mini_module_check", "locked": true, "points": 8, "schema_version": 3, "solution": false, "task": false}
check("mini_module", MiniModule)

# %% [markdown]
# {{hints mini_module}}

# %% [markdown]
# ### Your design in the grid
#
# The grid of the beginning has room for a fifth column: yours. Here it stands beside two of the others. While your
# class is unfinished, the cell says so and goes on. Look at which of torch's fields yours reproduces.

# %%
try:
    grid({"by assignment": ByAssignment, "nn.Module": nn.Module, "MiniModule": MiniModule})
except NotImplementedError as error:
    print(f"{error} is not finished yet: come back when its check passes.")

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch01-where-fc")

# %% [markdown]
# The second is about a message that you will meet.

# %%
quiz("ch01-no-such-attribute")

# %% [markdown]
# The third is about a layer that is there and does not learn.

# %%
quiz("ch01-late-layer")

# %% [markdown]
# The last one is about a home-made base class.

# %%
quiz("ch01-stale-file")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | `cannot assign module before Module.__init__() call` | `super().__init__()` is missing, or comes too late |
# | `has no attribute '_backward_hooks'` or `'_parameters'` on the first call | the same, hidden by a plain first assignment |
# | `cannot assign 'torch.FloatTensor' as parameter 'weight'` | a tensor over a parameter: wrap it, or copy into the old one |
# | `attribute 'x' already exists` | a name of the class, or a plain attribute that was there before the buffer |
# | `has no attribute 'feature'`, and you can see the property | an `AttributeError` inside the property |
# | `RecursionError` in `deepcopy` or `pickle` | a `__getattr__` that reads its own attributes |
# | a layer that was added later does not learn | the optimizer was built before it |
# | `parameters()` misses a layer that you can read | `__dict__`, `object.__setattr__`, a list, or an attribute of the class |
# | a value is right here and stale in the file | two homes for one name: compare `vars(module)` with the registries |
#
# ## What to read next
#
# - `torch/nn/modules/module.py`: `__setattr__`, then `register_parameter` and `register_buffer`. You know their plot.
# - Python's data model on `__getattr__` and `__setattr__`, for when exactly each is called.
# - Chapter 2, where you look at the most frequent value of all: the parameter.
