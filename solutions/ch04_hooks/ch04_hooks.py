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
# # Chapter 4 · Hooks
#
# A hook is a function of yours that torch calls when a module runs. It sees what goes in, what comes out, and what
# flows back, and it needs no line of the module's source. In this chapter you learn every kind there is, in which order
# they fire, and what they change by being there. You then write three tools that you can keep: one that records every
# layer's output, one that changes an output from outside, and one that names the module which made a nan.
#
# Plan for about three hours: a little more than one of reading and predicting, the rest for three exercises.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import io
import warnings
from contextlib import contextmanager

import torch
from torch import nn

from autograder import check, predict, quiz, recall

# %% [markdown]
# ## A nan from nowhere
#
# Somebody trains a network on pairs: it embeds two rows and measures the length of their difference. The model has two
# parts. Read them; there is nothing unusual in either.

# %%
class Length(nn.Module):
    def forward(self, x):
        return x.square().sum(-1).sqrt()


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, 2)
        self.length = Length()

    def forward(self, a, b):
        return self.length(self.embed(a) - self.embed(b))

# %% [markdown]
# The first two pairs of the batch are different rows; the third is a row and its duplicate, as real data has them. Look
# at the distances and the loss, and then at the gradient.

# %%
torch.manual_seed(0)
pairs = Pairs()
a = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 3.0]])
b = torch.tensor([[2.0, 2.0], [1.0, 0.0], [3.0, 3.0]])
distance = pairs(a, b)
loss = (distance - 1).square().mean()
loss.backward()
print("distance of the duplicates:", distance[2].item(), "| loss is finite:", bool(torch.isfinite(loss)))
print(pairs.embed.weight.grad)

# %% [markdown]
# Every output is a number, the loss is a number, and the only gradients in the model are nan. They stand in `embed`. Did
# `embed` make them? You could put a `print` into each forward and run again, but nothing goes wrong in forward. What you
# want is to look at the wires between the modules, in both directions, in a model that you may not be able to edit.
#
# That is what hooks are for, and at the end of this chapter a function of yours will name the guilty part. First, three
# questions on what came before. Answer from memory; a wrong guess costs nothing.

# %%
recall("ch04")

# %% [markdown]
# ## The ladder
#
# There is a ladder of ways to look inside a running model, and you climb it because each rung breaks somewhere. The
# first rung is a `print` in `forward`. It works in your own classes. It cannot be written into an `nn.Linear`, it has
# to be taken out again, and it prints during every later run too.
#
# The second rung is a **forward hook**: a function of three arguments, which you hand to one module. Torch calls it
# each time that module has returned. Look at what the three are.

# %%
def look(module, args, output):
    print(type(module).__name__, "| args:", args, "| output:", output)


double = nn.Linear(1, 1, bias=False)
nn.init.constant_(double.weight, 2.0)
handle = double.register_forward_hook(look)
y = double(torch.tensor([[3.0]]))

# %% [markdown]
# `args` is always a tuple, the positional arguments of the call; here it has one. Note what you did not need: the source
# of `nn.Linear`, or a subclass. `register_forward_hook` put the function into one of the tables that you counted in
# chapter 1. Look at it.

# %%
print("hooks on the layer:", len(double._forward_hooks))
handle.remove()
print("after remove():    ", len(double._forward_hooks))

# %% [markdown]
# ### One function a path
#
# You will rarely want one layer. A hook is not told its path, only the module, so the natural next step is a loop over
# `named_modules()`. The next cell is written as many people write it first. Predict what it prints.

# %%
predict("ch04-loop")

# %% [markdown]
# Two layers, one loop, one dict. Look at which paths the dict has.

# %%
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
shapes, handles = {}, []
for path, part in net.named_children():
    def remember(module, args, output):
        shapes[path] = tuple(output.shape)
    handles.append(part.register_forward_hook(remember))
net(torch.ones(4, 2))
print(shapes)

# %% [markdown]
# Both hooks wrote under the last path. A function looks up `path` when it **runs**, and by then the loop is over. The
# cure is a function that makes the hook: each call has a `path` of its own, which stays what it was. Look at the keys
# now.

# %%
def remember_as(path):
    def hook(module, args, output):
        shapes[path] = tuple(output.shape)
    return hook


for handle in handles:
    handle.remove()
shapes.clear()
handles = [part.register_forward_hook(remember_as(path)) for path, part in net.named_children()]
net(torch.ones(4, 2))
print(shapes)

# %% [markdown]
# ### Handles
#
# What `register_forward_hook` returns is a **handle**, and it is the only thing that can take this hook away without
# touching the others. Predict what happens to the hook when you throw the handle away instead.

# %%
predict("ch04-handle")

# %% [markdown]
# The layer is an `nn.Identity`, which returns its input, so that nothing distracts from the hooks. Look at the list
# after each of the three calls.

# %%
layer, heard = nn.Identity(), []
handle = layer.register_forward_hook(lambda module, args, output: heard.append("a"))
layer(0)
del handle
layer(0)
print("after del handle:", heard)

# %% [markdown]
# The hook lives in the module's table, and the handle holds only a weak reference to that table. Losing the handle loses
# the means to remove it. Here is the part of torch's own class that matters. What does `remove` do when it is called a
# second time, and what is `__exit__` there for?

# %%
from torch.utils.hooks import RemovableHandle

print(inspect.getsource(RemovableHandle.remove))
print(inspect.getsource(RemovableHandle.__exit__))

# %% [markdown]
# So a handle is a context manager: `with` removes the hook at the end of the block. A hook may also remove itself, which
# makes it fire once. Look at the list after both.

# %%
layer, heard = nn.Identity(), []
with layer.register_forward_hook(lambda module, args, output: heard.append("inside the block")):
    layer(0)
layer(0)
once = [layer.register_forward_hook(lambda module, args, output: once.pop().remove())]
layer(0)
print(heard, "| hooks left:", len(layer._forward_hooks))

# %% [markdown]
# Two habits of hooks bite those who do not expect them. The same function registered twice runs twice; that is what
# happens when you run a notebook cell again. And a deepcopy copies the hooks, while your handle removes only the
# original's. Look at both lists.

# %%
def hear(module, args, output):
    heard.append("heard")


heard.clear()
handles = [layer.register_forward_hook(hear), layer.register_forward_hook(hear)]
layer(0)
print("registered twice:", heard)
twin = copy.deepcopy(layer)
for handle in handles:
    handle.remove()
heard.clear()
layer(0)
print("original:", heard)
twin(0)
print("its copy:", heard)

# %% [markdown]
# What `remove()` does not do is empty the dict that your hook filled: what you stored stays until you let go of it. And
# a hook that was forgotten can spoil a file. `torch.save` of a whole module pickles its hooks too, and a lambda cannot
# be pickled. The `state_dict()` does not care, one more reason to save that. Look at both.

# %%
layer = nn.Linear(1, 1)
layer.register_forward_hook(lambda module, args, output: None)
try:
    torch.save(layer, io.BytesIO())
except Exception as error:
    print("the module cannot be saved, the message names the lambda:", "lambda" in str(error))
torch.save(layer.state_dict(), io.BytesIO())
print("its state_dict():", list(layer.state_dict()))

# %% [markdown]
# ### The with block
#
# The last rung is a context manager of your own: it registers on entry, hands out a dict, and removes on exit. The
# decorator `contextmanager` makes one from a function with a single `yield`: what stands before it happens on entry,
# what stands after it on exit. Look at the second line of output. The block ended with an error.

# %%
@contextmanager
def counting(module):
    counts = {"calls": 0}

    def hook(module, args, output):
        counts["calls"] += 1

    handle = module.register_forward_hook(hook)
    yield counts
    handle.remove()


with counting(double) as counts:
    double(torch.ones(2, 1))
print(counts, "| hooks left:", len(double._forward_hooks))
try:
    with counting(double):
        double(torch.ones(2, 7))
except RuntimeError as error:
    print(type(error).__name__, "| hooks left:", len(double._forward_hooks))

# %% [markdown]
# An exception inside the block arrives at the `yield` and skips what comes after it, unless that stands in a `finally`.
# A recorder is used most when something fails, so this is the case that counts. Keep it in mind for your own.

# %%
double._forward_hooks.clear()
print("hooks left:", len(double._forward_hooks))

# %% [markdown]
# That was the rough way out, and only right because every hook on this layer was ours. It would have removed everybody
# else's too.
#
# ## What a hook should keep
#
# The hook you see most often says `activations[name] = output.detach()`. It is wrong in two ways, and it forgets a
# third thing. The first concerns memory. Predict before you run.

# %%
predict("ch04-alias")

# %% [markdown]
# A layer that returns its input is followed by a ReLU that works in place. One hook keeps `output.detach()`, the other
# `output.detach().clone()`. Look at which of the two still has the negative number.

# %%
kept = {}


def keep(module, args, output):
    kept["detach"] = output.detach()
    kept["detach and clone"] = output.detach().clone()


net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(inplace=True))
net.load_state_dict({"0.weight": torch.tensor([[1.0], [-1.0]]), "0.bias": torch.zeros(2)})
net[0].register_forward_hook(keep)
net(torch.tensor([[5.0]]))
print(kept)

# %% [markdown]
# `detach()` gives a tensor without a graph that shares its memory, as `state_dict()` does (chapter 3). The in-place ReLU
# wrote into that memory. `clone()` alone would not do either: a clone belongs to the graph, and your dict would keep
# the graph of the whole forward pass alive. You want both.
#
# The second fault is that not every output is a tensor. Look at what an LSTM returns, and what the usual hook makes of
# it.

# %%
lstm = nn.LSTM(4, 4)
output, (hidden, cell) = lstm(torch.ones(1, 1, 4))
print("an LSTM returns a tensor and a pair:", tuple(output.shape), tuple(hidden.shape), tuple(cell.shape))
lstm.register_forward_hook(lambda module, args, output: output.detach())
try:
    lstm(torch.ones(1, 1, 4))
except AttributeError as error:
    print("AttributeError |", error)

# %% [markdown]
# Attention returns a pair whose second part may be `None`; many models return a dict. A recorder for any model has to
# walk into these.
#
# The third thing: a layer that is called twice in one forward pass returns twice, and a dict with one place a path keeps
# the last. If you want both, keep a list.
#
# ### The order of firing
#
# One more thing to know before you read such a record: its order. Predict which key comes first when every module has a
# hook.

# %%
predict("ch04-order")

# %% [markdown]
# A hook on every module of a small model, root included. Look at where the root, whose path is the empty string, stands.

# %%
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
outputs = {}


def keep_as(path):
    def hook(module, args, output):
        outputs[path] = output.detach().clone()
    return hook


for path, part in net.named_modules():
    part.register_forward_hook(keep_as(path))
net(torch.ones(1, 4))
print(list(outputs), "| the root's output is the last layer's:", torch.equal(outputs[""], outputs["2"]))

# %% [markdown]
# `named_modules()` starts at the root, but a forward hook fires when its module **returns**, and the root returns last.
# The order of the keys is the order of execution, which `print(net)` cannot tell you for a model of your own.

# %% [markdown]
# ## What hooks do not see
#
# "A hook on every module sees everything" is nearly true. Hooks see modules that are **called**. They do not see
# `torch.tanh(x)` in a forward: that is a function. And they do not see a module whose weights somebody reads without
# calling it. The best-known case sits in every transformer. You may read the advice to register on *leaves*, modules
# without children, because that is where the work is done. Look at the leaves of attention, and at who fires.

# %%
attention = nn.MultiheadAttention(8, 2, batch_first=True)
print("leaves:", [path for path, part in attention.named_modules() if not list(part.children())])
fired = []
attention.out_proj.register_forward_hook(lambda module, args, output: fired.append("out_proj"))
attention.register_forward_hook(lambda module, args, output: fired.append("attention"))
x = torch.ones(1, 3, 8)
attention(x, x, x)
print("fired:", fired)

# %% [markdown]
# The only leaf is `out_proj`, and nobody calls it: attention passes its weight to a function. A tool that watches leaves
# sees nothing of attention at all. Choose modules by type or by path, not by whether they have children.
#
# ### What hooks change by being there
#
# The second blind spot is a shortcut. In eval mode without gradients, `nn.TransformerEncoderLayer` may hand all of its
# work to a single fused function and call none of its children. Is a hook on a child then silent? Predict.

# %%
predict("ch04-fast-path")

# %% [markdown]
# A child with a `forward` of its own tells us whether it was called at all. Run the layer without a hook, and then with
# one on `norm1`. Look at what the hook adds to the list besides itself.

# %%
class Talking(nn.Linear):
    def forward(self, x):
        log.append("linear1 was called")
        return super().forward(x)


log = []
encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
encoder.linear1 = Talking(8, 16)
with torch.no_grad():
    encoder(x)
    print("no hook:  ", log)
    encoder.norm1.register_forward_hook(lambda module, args, output: log.append("hook on norm1"))
    encoder(x)
    print("one hook: ", log)

# %% [markdown]
# With the hook, the layer took the long way: it looks for hooks and gives up the shortcut when it finds one. So the hook
# did not miss anything, but it changed how the model ran, and how fast. And without a hook, a child that you had replaced
# by one of your own was ignored without a word. Here are the lines in which torch looks for hooks.

# %%
source = inspect.getsource(nn.TransformerEncoderLayer.forward).splitlines()
place = next(number for number, line in enumerate(source) if "_forward_hooks" in line)
print("\n".join(line[8:] for line in source[place - 1 : place + 6]))

# %% [markdown]
# Only the hooks of these modules are counted. The switch for the shortcut itself is
# `torch.backends.mha.set_fastpath_enabled(False)`; it belongs in a `try` with its counterpart in a `finally`, because it
# holds for the whole process.
#
# You now know what a recorder has to get right. Write one. It is the tool of this course that you are most likely to
# take with you.

# %% [markdown]
# {{card record_activations}}

# %% nbgrader={"grade": false, "grade_id": "record_activations", "locked": false, "schema_version": 3, "solution": true, "task": false}
@contextmanager
def record_activations(model, names=None):
    ### BEGIN SOLUTION
    def copied(value):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(copied(item) for item in value)
        return value

    def hook_for(path):
        def hook(module, args, output):
            seen.setdefault(path, []).append(copied(output))

        return hook

    seen, handles = {}, []
    parts = dict(model.named_modules())
    chosen = {path: parts[path] for path in (parts if names is None else names)}
    try:
        for path, part in chosen.items():
            handles.append(part.register_forward_hook(hook_for(path)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "record_activations_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("record_activations", record_activations)

# %% [markdown]
# {{hints record_activations}}

# %% [markdown]
# ## What a hook returns
#
# So far our hooks returned nothing, as `def` without `return` does. That was not a formality. Predict what this hook,
# which is meant to keep the first activation, does to the model.

# %%
predict("ch04-setdefault")

# %% [markdown]
# `setdefault` stores a value under a key that is new, and returns what is stored there. The lambda hands that on. Look at
# the outputs for two different inputs, and at the gradient of the first layer.

# %%
torch.manual_seed(0)
first = {}
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
net[0].register_forward_hook(lambda module, args, output: first.setdefault("hidden", output.detach()))
zeros, fives = net(torch.zeros(1, 3)), net(torch.full((1, 3), 5.0))
fives.sum().backward()
print("same output for different inputs:", torch.equal(zeros, fives))
print("gradient of the first layer:", net[0].weight.grad)

# %% [markdown]
# Whatever a forward hook returns **replaces the output**, unless it is `None`. From the first call on, this model has
# ignored its input, and no gradient reaches what comes before the hook. No error was raised. Write hooks with `def`,
# and return on purpose only. (`heard.append` was a safe lambda above: it returns `None`.)
#
# On purpose it is a fine tool: it answers "what would the model do if this layer said something else?" without touching
# the source. Look at the output and the gradient when the layer's output is tripled: 3 · 2 · x.

# %%
def triple(module, args, output):
    return output * 3


x = torch.tensor([[5.0]])
with double.register_forward_hook(triple):
    y = double(x)
y.sum().backward()
print("with the hook:", y.item(), "| gradient of the weight:", double.weight.grad.item())
print("without:      ", double(x).item())

# %% [markdown]
# ### Before forward
#
# A **forward pre-hook** gets `(module, args)` before forward runs, and may return new arguments. It should return a
# tuple; torch wraps anything else into one. Predict what that does to a list.

# %%
predict("ch04-pre-hook")

# %% [markdown]
# The layer doubles its input. Three pre-hooks return a tuple, a tensor and a list. Look at which of them forward accepts.

# %%
def returns(value):
    return lambda module, args: value


ten = torch.tensor([[10.0]])
for answer in ((ten,), ten, [ten]):
    with double.register_forward_pre_hook(returns(answer)):
        try:
            print(type(answer).__name__, "|", double(x).item())
        except TypeError as error:
            print(type(answer).__name__, "| TypeError |", str(error).splitlines()[0][:60])

# %% [markdown]
# The list became one argument, a list, and `linear` wants a tensor. Several returns are applied in turn: each hook gets
# what the one before it handed on.
#
# ### The kinds of hooks
#
# Texts speak of three types of hooks. Here are the ones that a module has in this torch; look for yourself.

# %%
print([name for name in dir(nn.Module) if name.startswith("register_") and name.endswith("hook")])

# %% [markdown]
# | hook | fires | is given | may change, by returning |
# |---|---|---|---|
# | forward pre-hook | before forward | module, args | the arguments |
# | forward hook | when the module returns | module, args, output | the output |
# | full backward pre-hook | when the gradient of the output arrives | module, grad_output | grad_output |
# | full backward hook | when the gradients of the inputs are ready | module, grad_input, grad_output | grad_input |
# | state_dict hooks, before and after | around `state_dict()` | module, prefix, … | the dict, in place |
# | load_state_dict hooks, before and after | around loading | module, the dict, … | the dict, in place |
#
# Four for execution, four for files, and an old one: `register_backward_hook` without "full" is deprecated. Two more
# families are not in this list: global hooks and the hooks of a single tensor. You will meet both below.

# %% [markdown]
# {{card replace_output}}

# %% nbgrader={"grade": false, "grade_id": "replace_output", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replace_output(model, path, change):
    ### BEGIN SOLUTION
    def hook(module, args, output):
        if not isinstance(output, tuple):
            return change(output)
        changed = change(output[0])
        return None if changed is None else (changed, *output[1:])

    return model.get_submodule(path).register_forward_hook(hook)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "replace_output_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("replace_output", replace_output)

# %% [markdown]
# {{hints replace_output}}

# %% [markdown]
# ## Options
#
# A hook is given positional arguments only. What the caller passed by keyword it never hears of, unless you register
# with `with_kwargs=True`; then it gets one argument more. Look at what each of the two hooks can tell about the scale.

# %%
class Scale(nn.Module):
    def forward(self, x, scale=1.0):
        if scale == 0:
            raise ValueError("a scale of zero")
        return x * scale


def plain(module, args, output):
    print("plain hook:  ", len(args), "argument, output", output)


def keywords(module, args, kwargs, output):
    print("with_kwargs: ", kwargs, "output", output)


scaling = Scale()
scaling.register_forward_hook(plain)
scaling.register_forward_hook(keywords, with_kwargs=True, always_call=True, prepend=True)
y = scaling(2.0, scale=3.0)

# %% [markdown]
# `prepend=True` put the second one first. A pre-hook with `with_kwargs=True` returns a pair, `(args, kwargs)`, or `None`.
# The third option, `always_call=True`, concerns a forward that raises. Predict which of the two hooks fires.

# %%
predict("ch04-always-call")

# %% [markdown]
# Forward raises for a scale of zero. Look at who was called, with which output, and whether the error still arrives.

# %%
try:
    scaling(2.0, scale=0)
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# The hook saw the arguments that led to the failure, with `None` in place of an output; what it returns then is ignored,
# and the error goes on its way. It is the option for a log that should end with the call that failed.
#
# ### Global hooks
#
# A hook for every module of every model in the process is registered in `torch.nn.modules.module`. It runs before the
# module's own hooks, also before those with `prepend`. Look at the order.

# %%
from torch.nn.modules.module import register_module_forward_hook

log = []
net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
net[0].register_forward_hook(lambda module, args, output: log.append("own hook of the Linear"), prepend=True)
with register_module_forward_hook(lambda module, args, output: log.append("global: " + type(module).__name__)):
    net(torch.ones(1, 1))
print(log)

# %% [markdown]
# Always remove a global hook: it would fire in your colleague's code too, and in the checks of this notebook. And note
# its blind spot: the shortcut of `nn.TransformerEncoderLayer` counts hooks on modules, not global ones, so a global hook
# sees that layer and none of its children. Look at the two lists.

# %%
encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
for enabled in (True, False):
    torch.backends.mha.set_fastpath_enabled(enabled)
    log.clear()
    with torch.no_grad(), register_module_forward_hook(lambda module, args, out: log.append(type(module).__name__)):
        encoder(torch.ones(1, 3, 8))
    print("shortcut allowed:" if enabled else "not allowed:", len(log), "calls, the last:", log[-1])
torch.backends.mha.set_fastpath_enabled(True)

# %% [markdown]
# There are global hooks for registration, too: they fire when a parameter, a buffer or a module enters one of the three
# registries. With one of them you can watch a constructor at work. Look at the order in which a small model is put
# together.

# %%
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

log.clear()
for_parameters = register_module_parameter_registration_hook(lambda module, name, value: log.append(f"parameter {name}"))
for_modules = register_module_module_registration_hook(lambda module, name, value: log.append(f"module {name}"))
nn.Sequential(nn.Linear(1, 1), nn.ReLU())
for_parameters.remove(), for_modules.remove()
print(log)

# %% [markdown]
# ### Hooks around a file
#
# In chapter 3 you saw that the keys of a `state_dict()` are an interface: rename an attribute, and old files no longer
# fit. A load pre-hook mends that. It is given the dict before the module looks into it, and may rename a key there. Look
# at what loading an old file says.

# %%
def renamed(module, state, prefix, *rest):
    if prefix + "gamma" in state:
        state[prefix + "weight"] = state.pop(prefix + "gamma")


norm = nn.LayerNorm(2)
norm.register_load_state_dict_pre_hook(renamed)
print(norm.load_state_dict({"gamma": torch.tensor([3.0, 3.0]), "bias": torch.zeros(2)}), norm.weight.tolist())
