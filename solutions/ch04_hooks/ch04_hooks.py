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
from simulations import HooksFiring

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
# chapter 1, `_forward_hooks`. Look at it.

# %%
print("hooks on the layer:", len(double._forward_hooks))
handle.remove()
print("after remove():    ", len(double._forward_hooks))

# %% [markdown]
# ### One function a path
#
# You will rarely want one layer. A hook is not told its path, only the module, so the natural next step is a loop over
# `named_children()`, which gives both. The next cell is written as many people write it first. Predict what it prints.

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
# The layer is an `nn.Identity`, which returns its input, so that nothing distracts from the hooks. It is called once
# before `del` and once after it. Look at how much the list holds then.

# %%
layer, heard = nn.Identity(), []
handle = layer.register_forward_hook(lambda module, args, output: heard.append("a"))
layer(0)
del handle
layer(0)
print("after del handle:", heard)

# %% [markdown]
# The hook lives in the module's table. The handle only knows its number there, and the table by a weak reference, which
# is one that keeps nothing alive. Losing the handle loses the means to remove the hook. Here is the part of torch's own
# class that matters. (The extra dicts hold a hook's options, which come later.) What does `remove` do when it is called
# a second time, and what is `__exit__` there for?

# %%
from torch.utils.hooks import RemovableHandle

print(inspect.getsource(RemovableHandle.remove))
print(inspect.getsource(RemovableHandle.__exit__))

# %% [markdown]
# A second `remove` finds no such number and does nothing. And a handle is a context manager: `with` removes the hook at
# the end of the block. A hook may also remove itself, which makes it fire once. The layer is called twice in either case;
# look at how often each hook was heard.

# %%
layer, heard = nn.Identity(), []
with layer.register_forward_hook(lambda module, args, output: heard.append("inside the block")):
    layer(0)
layer(0)


def only_once(module, args, output):
    heard.append("once")
    handle.remove()


handle = layer.register_forward_hook(only_once)
layer(0)
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
# The second fault is that not every output is a tensor. An LSTM reads a sequence; all that matters here is what it
# returns. Look at that, and at what the usual hook makes of it.

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
# without children, because that is where the work is done. Look at the leaves of `nn.MultiheadAttention`, and at who
# fires.

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
# The second blind spot is a shortcut. An `nn.TransformerEncoderLayer` holds attention, two linear layers and two norms.
# In eval mode without gradients it may hand all of its work to a single fused function and call none of these children.
# Is a hook on a child then silent? Predict.

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
# by one of your own was ignored without a word. Here are the lines in which torch looks for hooks. The text in quotes is
# its reason not to take the shortcut; where it finds no reason, it takes it.

# %%
source = inspect.getsource(nn.TransformerEncoderLayer.forward).splitlines()
place = next(number for number, line in enumerate(source) if "_forward_hooks" in line)
print("\n".join(line[8:] for line in source[place - 1 : place + 6]))

# %% [markdown]
# Only hooks on the layer itself and on what is in it are counted. The switch for the shortcut itself is
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
double.weight.grad = None
with double.register_forward_hook(triple):
    y = double(x)
y.sum().backward()
print("with the hook:", y.item(), "| gradient of the weight:", double.weight.grad.item())
print("without:      ", double(x).item())

# %% [markdown]
# ### Before forward
#
# A **forward pre-hook**, registered with `register_forward_pre_hook`, gets `(module, args)` before forward runs, and may
# return new arguments. It should return a tuple; torch wraps anything else into one. Predict what that does to a list.

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
# | state_dict pre-hook, post-hook | before and after `state_dict()` | module, then prefix or the dict | nothing; the dict is changed in place |
# | load_state_dict pre-hook | before the module looks into the dict | module, the dict, prefix, … | nothing; the dict is changed in place |
# | load_state_dict post-hook | after loading | module, the missing and unexpected keys | nothing; the lists are changed in place |
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
# A hook for every module of every model in the process is registered by a function of `torch.nn.modules.module`, here
# `register_module_forward_hook`. It runs before the module's own hooks, also before those with `prepend`. Look at the
# order.

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
# registries. With `register_module_parameter_registration_hook` and `register_module_module_registration_hook` you can
# watch a constructor at work. Look at the order in which a small model is put together.

# %%
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

log.clear()
for_parameters = register_module_parameter_registration_hook(
    lambda module, name, value: log.append(f"parameter {name}")
)
for_modules = register_module_module_registration_hook(lambda module, name, value: log.append(f"module {name}"))
nn.Sequential(nn.Linear(1, 1), nn.ReLU())
for_parameters.remove(), for_modules.remove()
print(log)

# %% [markdown]
# ### Hooks around a file
#
# In chapter 3 you saw that the keys of a `state_dict()` are an interface: rename an attribute, and old files no longer
# fit. A hook of `register_load_state_dict_pre_hook` mends that. It is given the dict before the module looks into it, and
# may rename a key there. Look at what an `nn.LayerNorm` says when it loads an old file.


# %%
def renamed(module, state, prefix, *rest):
    if prefix + "gamma" in state:
        state[prefix + "weight"] = state.pop(prefix + "gamma")


norm = nn.LayerNorm(2)
norm.register_load_state_dict_pre_hook(renamed)
print(norm.load_state_dict({"gamma": torch.tensor([3.0, 3.0]), "bias": torch.zeros(2)}), norm.weight.tolist())

# %% [markdown]
# ## Backward hooks
#
# A full backward hook looks at the same wires in the other direction. It is given two tuples of gradients, and their
# names are the source of most mistakes with it. Take the layer that doubles, and the loss y = 2 · x. Which of the two is
# 1 and which is 2?


# %%
def gradients(module, grad_input, grad_output):
    print("grad_input", grad_input, "| grad_output", grad_output)


x = torch.tensor([[3.0]], requires_grad=True)
with double.register_full_backward_hook(gradients):
    double(x).sum().backward()

# %% [markdown]
# The names say at which end of the module, not in which direction. `grad_output` is the gradient at the module's output:
# it **arrives**. `grad_input` is the gradient at its input: it **leaves**, on the way down to the earlier layers.
# Backward runs from the loss to the data, so a module receives `grad_output` and makes `grad_input`.
#
# ### What grad_input holds
#
# There is one entry for each positional input, and it may be missing. Look at three calls: an input that needs a gradient,
# one that does not, and one that was passed by keyword.


# %%
def shapes_of(module, grad_input, grad_output):
    print([None if gradient is None else tuple(gradient.shape) for gradient in grad_input])


with double.register_full_backward_hook(shapes_of), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    double(x).sum().backward()
    double(x.detach()).sum().backward()
    double(input=x).sum().backward()

# %% [markdown]
# The first module of a model usually gets data, which need no gradient, so its `grad_input` is `(None,)`, and torch warns
# you about it. If you want to see what a first module passes on, ask for the gradient of the input. An entry of
# `grad_output` may be `None` too, when the first part of a tuple was not used: check before you call `.norm()` on it.
#
# Note who is absent: the gradients of the module's own weights. They never pass through the hook. They end up in
# `.grad`. Whether they are there already when the hook fires depends on the input as well; do not rely on it.
#
# ### Forth and back
#
# Full backward hooks fire **during** backward, each when the gradients of its module's inputs are ready. From the last
# layer to the first, then; and the root? Predict its place for a model that is fed plain data.

# %%
predict("ch04-backward-order")

# %% [markdown]
# The same model twice: with data that need no gradient, and with an input that asks for one. Look at where the root
# stands among the backward hooks, in the first line and in the second.

# %%
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
log.clear()
for path, part in (("root", net), ("0", net[0]), ("1", net[1])):
    part.register_forward_hook(lambda module, args, output, path=path: log.append(path))
    part.register_full_backward_hook(lambda module, grad_input, grad_output, path=path: log.append(path))
for needs in (False, True):
    log.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(torch.ones(2, 3, requires_grad=needs)).sum().backward()
    print("forward:", log[:3], "| backward, input needs a gradient:" if needs else "| backward:", log[3:])

# %% [markdown]
# (The default argument `path=path` is the short way to give each function a path of its own.) With plain data there is no
# gradient of the root's input to wait for, so its hook fires at once, when the gradient of its output arrives. With an
# input that asks, it waits for the last of them. The forward order is the same in both.
#
# Here is a whole forward and backward pass with four hooks on every module, recorded from real torch. Step through it,
# look at where the root stands at the start and at the end, then switch to the input that does not ask.

# %%
HooksFiring()

# %% [markdown]
# ### Changing what flows on
#
# A full backward hook may return a new `grad_input`, as a tuple of the same length. Here it is halved. Look at the
# gradient of the input, which would be 2, and at the gradient of the weight, which would be 3.


# %%
def halve(module, grad_input, grad_output):
    return tuple(gradient / 2 for gradient in grad_input)


double.weight.grad, x.grad = None, None
with double.register_full_backward_hook(halve):
    double(x).sum().backward()
print("input:", x.grad.item(), "| weight:", double.weight.grad.item())

# %% [markdown]
# What flows on is halved, and the weight's own gradient is untouched. So this is no gradient clipping, although it is
# recommended for it in many places; chapter 9 has what works. And the length must fit. Look at the message.

# %%
with double.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input * 2):
    try:
        double(x).sum().backward()
    except RuntimeError as error:
        print("RuntimeError |", error)

# %% [markdown]
# A single tensor has hooks as well, and for a weight they are the right place: `register_hook` on a tensor is given its
# gradient and may return another one. Here it is halved before it is added to `.grad`. Look at both numbers again.

# %%
double.weight.grad, x.grad = None, None
with double.weight.register_hook(lambda gradient: gradient / 2):
    double(x).sum().backward()
print("input:", x.grad.item(), "| weight:", double.weight.grad.item())

# %% [markdown]
# ### Where backward hooks stumble
#
# To catch the gradients, torch wraps the module's inputs and outputs. That has a price: a wrapped tensor must not be
# changed in place. A model with an in-place ReLU that has always worked stops working while you watch it.

# %%
net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
try:
    net(torch.ones(2, 3))
except RuntimeError as error:
    print(type(error).__name__, "|", str(error).split(". ")[0])

# %% [markdown]
# Only tensors and tuples of tensors can be wrapped. A module that returns a dict is watched in vain, with a warning.
# Under `torch.no_grad()` no backward hook is set up at all. Look at the message and at how often the hook fired.


# %%
class AsDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return {"y": self.layer(x)}


log.clear()
model = AsDict()
model.register_full_backward_hook(lambda module, grad_input, grad_output: log.append("fired"))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model(torch.ones(1, 2))["y"].sum().backward()
print(str(caught[0].message)[:80], "| fired:", len(log))

# %% [markdown]
# The older `register_backward_hook` sees the gradients of the module's last operation only, which for a Linear are three
# tensors of unexpected shapes. It is deprecated, and refuses to stand beside a full one. Look at the first sentence.

# %%
layer = nn.Linear(2, 1)
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
try:
    layer.register_backward_hook(lambda module, grad_input, grad_output: None)
except RuntimeError as error:
    print("RuntimeError |", str(error).split(". ")[0])

# %% [markdown]
# ## Who made the nan
#
# Back to the first page. Many texts give a detector: a full backward hook on every module that prints the module's name
# when `grad_output` contains a nan. Take four modules that you can follow by hand. The first layer gives 0 and 2;
# they are squared, the square root is taken, and the last layer adds up.


# %%
class Square(nn.Module):
    def forward(self, x):
        return x * x


class SquareRoot(nn.Module):
    def forward(self, x):
        return torch.sqrt(x)


net = nn.Sequential(nn.Linear(2, 2, bias=False), Square(), SquareRoot(), nn.Linear(2, 1, bias=False))
net.load_state_dict({"0.weight": torch.tensor([[0.0, 0.0], [0.0, 1.0]]), "3.weight": torch.ones(1, 2)})
data = torch.tensor([[1.0, 2.0]])
print(net(data))

# %% [markdown]
# Forward: 0 and 2, then 0 and 4, then 0 and 2, then 2. Nothing is wrong. The derivative of a square root at zero is infinite.
# Predict whom the detector will print.

# %%
predict("ch04-nan")

# %% [markdown]
# The detector, as it is usually written, and beside it everything that arrives at each module and leaves it. Look for the
# first line, from the top, in which something finite comes in and something else goes out.


# %%
def detector(path):
    def hook(module, grad_input, grad_output):
        blamed = any(torch.isnan(gradient).any() for gradient in grad_output)
        leaves = None if grad_input[0] is None else grad_input[0].tolist()
        print(
            path, type(module).__name__, "| arrives", grad_output[0].tolist(), "| leaves", leaves, "| BLAMED" * blamed
        )

    return hook


handles = [part.register_full_backward_hook(detector(path)) for path, part in net.named_children()]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    net(data).sum().backward()

# %% [markdown]
# Ones arrive at the square root, and an infinity leaves: 1 / (2 · √0). The square multiplies it by 2 · 0, and infinity
# times zero is nan. The detector prints the first layer, to which the nan was handed: the only one of the four that did
# nothing but receive. In a deep model it prints every layer below the culprit.
#
# The guilty module is the one at which something **finite arrives and something not finite leaves**. Infinite counts: with
# nan alone you would have accused the square. And three guilty parties escape even this rule:
#
# - a module whose own weight gets the nan; what it passes on may be finite. Look at the `.grad` of its own parameters,
#   which are `parameters(recurse=False)`;
# - an operation in the `forward` of a module that has children: no child is guilty. Watch every module, and take the
#   innermost;
# - the loss itself, or the data. Then nobody in the model is guilty, and something that is not finite arrives all the same.
#
# Torch has a tool of its own, for operations instead of modules: `torch.autograd.set_detect_anomaly(True)` stops at the
# first operation whose gradient is nan. Look at which operation it names here.

# %%
for handle in handles:
    handle.remove()
with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
    warnings.simplefilter("ignore")
    try:
        net(data).sum().backward()
    except RuntimeError as error:
        print("RuntimeError |", error)

# %% [markdown]
# The multiplication of the square, not the square root: this tool looks for nan, and an infinity was made. It is slow, and
# it points at a line of forward, which is often all you need; now you know to look one step further up.
#
# Your own detector can be better than both. To leave no trace it may ask a copy: you know from chapter 3 what a
# `deepcopy` takes along, and what it does not.

# %% [markdown]
# {{card locate_nan}}


# %% nbgrader={"grade": false, "grade_id": "locate_nan", "locked": false, "schema_version": 3, "solution": true, "task": false}
def locate_nan(model, x, loss_of):
    ### BEGIN SOLUTION
    def finite(values):
        return all(torch.isfinite(value).all() for value in values if isinstance(value, torch.Tensor))

    def watch(path, module):
        def after_forward(module, args, output):
            if finite(args) and not finite([output]):
                forward.append(path)

        def in_backward(module, grad_input, grad_output):
            arrived[path] = finite(grad_output)
            if arrived[path] and not finite(grad_input):
                backward.append(path)

        module.register_forward_hook(after_forward)
        module.register_full_backward_hook(in_backward)

    if not finite([x]):
        return ("input", "")
    forward, backward, arrived = [], [], {}
    twin, x = copy.deepcopy(model), x.detach().clone().requires_grad_(True)
    for path, module in twin.named_modules():
        watch(path, module)
    loss = loss_of(twin(x))
    if forward:
        return ("forward", forward[0])
    loss.backward()
    for path, module in twin.named_modules():
        if arrived[path] and not finite(weight.grad for weight in module.parameters(recurse=False)):
            backward.append(path)
    if backward:
        return ("backward", backward[0])
    return None if finite([loss, x.grad]) and all(arrived.values()) else ("loss", "")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "locate_nan_check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("locate_nan", locate_nan)

# %% [markdown]
# {{hints locate_nan}}

# %% [markdown]
# Now the model of the first page. Your function takes one input, so a small subclass cuts the two rows out of one. Look
# at whom it names.


# %%
class PairsFromOneTensor(Pairs):
    def forward(self, x):
        return super().forward(x[:, :2], x[:, 2:])


try:
    both = torch.cat([a, b], dim=1)
    print(locate_nan(PairsFromOneTensor(), both, lambda distance: (distance - 1).square().mean()))
except NotImplementedError:
    print("locate_nan is still to be written")

# %% [markdown]
# It is `length`, in backward, and not `embed`, which holds the nan. Two rows that are equal have a distance of zero, and
# the square root has no finite slope there. A tiny number added before the root is taken keeps the slope finite. Would
# the same number, added afterwards, help?
#
# ## Quiz
#
# Five questions. Each wrong answer comes with its reason.

# %%
quiz("ch04-change-output")

# %% [markdown]
# The second is about a tool that somebody else wrote.

# %%
quiz("ch04-notebook-cell")

# %% [markdown]
# The third is about a model that stopped learning.

# %%
quiz("ch04-accident")

# %% [markdown]
# The fourth is about the direction of gradients.

# %%
quiz("ch04-grad-output")

# %% [markdown]
# The last one is about what a tool does not show.

# %%
quiz("ch04-attention")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | a hook fires more often than you call the model | it was registered twice: a cell that ran again, a handle that was lost |
# | every activation stands under the same name | a function in a loop that reads the loop's variable |
# | the model ignores its input since you began to watch it | a hook that returns something, often a lambda |
# | recorded activations have no negative numbers | an in-place operation after the layer, and a record without `clone()` |
# | memory grows while you record | a record without `detach()`: it keeps the graph |
# | `'tuple' object has no attribute 'detach'` | an LSTM, attention, or a module of your own that returns several things |
# | a hook on a child never fires | nobody calls it: its weights are read directly, or a shortcut was taken |
# | results or speed change when you add a hook | a shortcut that is given up when hooks are found |
# | `BackwardHookFunction is a view and is being modified inplace` | an in-place operation on the input or output of a watched module |
# | nan in a gradient | the module at which something finite arrives and something else leaves |
# | `torch.save` of a model cannot pickle a function | a hook that was left on it; save the `state_dict()` |
#
# ## What to read next
#
# - `torch/nn/modules/module.py`: the `register_…_hook` methods, each a few lines that fill a table.
# - `torch/utils/hooks.py`: `RemovableHandle`, and `BackwardHook`, which does the wrapping you stumbled over.
# - torch's notes on autograd mechanics, the section on backward hooks execution.
# - Chapter 5, where you read and rebuild the function that calls all of these hooks.
