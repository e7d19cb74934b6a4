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
# # Chapter 5 · The call protocol
#
# You write `forward`, and you call the layer. Between the two stands a function of torch's that you have never called
# by name. In this chapter you read it, see what it does in which order, find out what really is lost when somebody
# goes round it, and then write it yourself.
#
# Plan for a little more than two hours: one for reading and predicting, the rest for two exercises.
#
# The first cell loads what you need. Run it now.

# %%
import copy
import inspect
import timeit
import warnings

import torch
from torch import nn
from torch.nn.modules import module as tables
from torch.nn.utils import prune

from autograder import check, predict, quiz, recall
from simulations import CallOrForward

# %% [markdown]
# ## A bug that goes away when you look
#
# Somebody pruned a layer: its two weights were set to one (`nn.init.ones_`), and the second is masked away with torch's
# own tool, `prune.custom_from_mask`. Look at what the tool has made of `weight`, and at the ones that are in it for now.

# %%
layer = nn.Linear(2, 1, bias=False)
nn.init.ones_(layer.weight)
prune.custom_from_mask(layer, "weight", torch.tensor([[1.0, 0.0]]))
print(list(layer.state_dict()))
print(layer.weight_orig.tolist(), "·", layer.weight_mask.tolist(), "=", layer.weight.tolist())

# %% [markdown]
# The layer was trained elsewhere, to the weights 3 and 5. The server loads them. With the input (10, 10) and the
# second weight masked, the answer has to be 30.

# %%
trained = {"weight_orig": torch.tensor([[3.0, 5.0]]), "weight_mask": torch.tensor([[1.0, 0.0]])}
print(layer.load_state_dict(trained))
x = torch.tensor([[10.0, 10.0]])
print("the server says:", layer.forward(x).item())

# %% [markdown]
# Every key matched, the file holds the right numbers, and the answer is that of the untrained layer. So you call the
# layer yourself, to look closer. Then you ask the server again.

# %%
print("you say:        ", layer(x).item())
print("the server says:", layer.forward(x).item())

# %% [markdown]
# The bug is gone, because you looked. One of the two lines did something to the layer that the other did not. By the
# end of the chapter you will know what, and have a tool that finds the line. Three questions on earlier chapters
# first; they are about things that you will need here.

# %%
recall("ch05")

# %% [markdown]
# ## From layer(x) to forward
#
# Parentheses after an object make Python look for `__call__` on its class. Here is what it finds for every module,
# read from the torch that is installed on your machine. How many ways lead out of it?

# %%
print(nn.Module.__call__ is nn.Module._wrapped_call_impl)
print(inspect.getsource(nn.Module._wrapped_call_impl))

# %% [markdown]
# Two ways: a compiled implementation, if there is one, which the last section comes back to, or `_call_impl`. Look at
# the beginning of that one, past its first line, which is for the tracing of chapter 8. What does it ask, and what does
# it do when the answer is no?

# %%
source = inspect.getsource(nn.Module._call_impl).splitlines()
first_return = next(number for number, line in enumerate(source) if "return" in line)
print("\n".join(line[4:] for line in source[: first_return + 1]))

# %% [markdown]
# That is the **fast path** of every module (the shortcut of chapter 4 belonged to one class): eight tables of hooks, four
# of the module's own and four that hold for all modules. If all eight are empty, the call is `forward` and nothing else.
# No preparation, no bookkeeping, nothing for autograd.
#
# The question itself costs a little, and the long way a little more. The cell times a layer that does nothing, and
# prints only which is faster than which, because the times are those of your machine. (If it says False, something else
# kept the machine busy: run it again.)


# %%
def seconds(action):
    return min(timeit.repeat(action, number=20_000, repeat=5))


idle, one = nn.Identity(), torch.ones(1)
direct, called = seconds(lambda: idle.forward(one)), seconds(lambda: idle(one))
idle.register_forward_hook(lambda *given: None)
print("forward() < call < call with a hook:", direct < called < seconds(lambda: idle(one)))

# %% [markdown]
# We are talking of about a millionth of a second. Next to a matrix product it does not count, so speed is no reason
# to write `.forward(x)`.
#
# ### Found on the class, found on the instance
#
# Two lookups take place here: Python looks for `__call__`, and `_call_impl` looks for `forward`. You may set both as
# attributes of one layer. Predict which of the two is found.

# %%
predict("ch05-instance")

# %% [markdown]
# Each is set on a layer that returns its input. Look at which of the two calls changes.

# %%
layer = nn.Identity()
layer.__call__ = lambda x: "instance __call__"
print(layer(1))
layer.forward = lambda x: "instance forward"
print(layer(1))

# %% [markdown]
# Python looks for `__call__` on the class and never asks the instance. `self.forward` is an ordinary attribute, and
# there the instance comes first. Some libraries use that: Accelerate, which spreads large models over devices, puts a
# `forward` of its own on your layer. It also means that `type(layer).forward(layer, x)` is not the same as
# `layer.forward(x)`. Look for the name in `vars(layer)`; deleting it brings the class's own back.

# %%
print("forward" in vars(layer))
del layer.forward
print("forward" in vars(layer), layer(1))

# %% [markdown]
# `forward` is yours to define, and it may take and return any Python object. If you forget it, the base class has one
# that says so.


# %%
class Anything(nn.Module):
    def forward(self, x, *, words):
        return {"twice": 2 * x, "words": words.split()}


print(Anything()(torch.ones(1), words="no tensor"))
try:
    nn.Module()(1)
except NotImplementedError as error:
    print("NotImplementedError |", error)

# %% [markdown]
# ### Whoever overrides \_\_call\_\_
#
# Some people write `__call__` instead of `forward`, because it also works. It replaces the whole function you have
# just seen the beginning of. Look at what a hook does on such a layer, and at `forward`.


# %%
class Shortcut(nn.Module):
    def __call__(self, x):
        return 2 * x


shortcut, fired = Shortcut(), []
shortcut.register_forward_hook(lambda *given: fired.append("hook"))
print(shortcut(torch.ones(1)), fired)
try:
    shortcut.forward(torch.ones(1))
except NotImplementedError as error:
    print("NotImplementedError |", error)

# %% [markdown]
# Hooks are dead, and so is whatever else goes through the call or looks for a `forward`: `shortcut.compile()`, from the
# end of this chapter, would be ignored without a word. Only the answer is right, which is why it goes unnoticed.
#
# ## The order of a call
#
# Now the long way. A small layer notes that its `forward` runs, and a maker of hooks notes theirs. Mind that the
# hooks return None, as chapter 4 advised.

# %%
log = []


class Doubling(nn.Module):
    def forward(self, x):
        log.append("forward")
        return 2 * x


def noting(name):
    def hook(*given):
        log.append(name)

    return hook


# %% [markdown]
# The cell below registers four hooks, in an unhelpful order: the own hook first, then the own pre-hook, the global
# ones last (`register_module_forward_pre_hook` is the twin of the global hook of chapter 4). Predict in which order the
# five notes appear.

# %%
predict("ch05-order")

# %% [markdown]
# Compare with your prediction, and find the two rules that explain the order.

# %%
layer = Doubling()
layer.register_forward_hook(noting("own hook"))
layer.register_forward_pre_hook(noting("own pre-hook"))
everywhere = [
    tables.register_module_forward_hook(noting("global hook")),
    tables.register_module_forward_pre_hook(noting("global pre-hook")),
]
layer(torch.ones(1))
for handle in everywhere:
    handle.remove()
print(" → ".join(log))

# %% [markdown]
# First by kind, whatever the order of registration. Within a kind the global hooks come before the module's own, and
# within a table the order of registration holds, unless somebody said `prepend=True`. Here are the lines of torch
# that decide it. Which one calls your `forward`?

# %%
spine = ("forward_pre_hooks.items()", "setup_input", "forward_call(*args", "forward_hooks.items()", "setup_output")
inner = source[source.index("        def inner():") : source.index("        try:")]
print("\n".join(line.strip() for line in inner if any(word in line for word in spine)))

# %% [markdown]
# The loops run over copies: the star unpacks the tables into a new tuple before the first hook is called. So a hook
# may remove itself, and the loop does not notice. A loop over the table itself would stop with a `RuntimeError`.
#
# ### What backward hooks add
#
# Two of the lines above are about backward hooks, and they stand on both sides of `forward`. Many descriptions have
# the call set up "the graph" at its end. Look at where the input and the output of a layer come from, without a
# backward hook and with one.


# %%
class Looking(nn.Module):
    def forward(self, x):
        print("   inside, the input comes from", x.grad_fn.name())
        return 2 * x


looking, x = Looking(), torch.ones(1, requires_grad=True) + 1
print("no hook:  the output comes from", looking(x).grad_fn.name())
looking.register_full_backward_hook(lambda *given: None)
print("one hook: the output comes from", looking(x).grad_fn.name())

# %% [markdown]
# Without a backward hook the call adds nothing to the graph: the operations in `forward` record themselves as they
# run. With one, it wraps the inputs before `forward` and the output after the forward hooks. Those two nodes are how
# the hook learns when a gradient passes. Under `torch.no_grad()` no gradient will, and nothing is wrapped.

# %%
with torch.no_grad():
    print("no_grad:  the output comes from", looking(x).grad_fn)

# %% [markdown]
# Nothing here is triggered on its own, either. The call directs the forward pass; the backward pass begins when you
# write `loss.backward()`, and belongs to autograd, which does not ask who is registered where.
#
# Step through the whole call once. The simulation runs a real layer and marks the lines of torch that were really
# executed. Find the line at which the call without hooks leaves, and count what `.forward(x)` leaves out.

# %%
CallOrForward()

# %% [markdown]
# ### A call within a call
#
# A model's `forward` calls its children, and each of these calls is complete in itself. Look at who is entered when,
# and note that the model's registration order plays no part.


# %%
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Identity()
        self.body = nn.Sequential(nn.Identity())

    def forward(self, x):
        return self.head(self.body(x))


model, log = Model(), []
for path, part in model.named_modules():
    part.register_forward_pre_hook(noting(f"enter {path or 'root'}"))
    part.register_forward_hook(noting(f"leave {path or 'root'}"))
model(torch.ones(1))
print(" · ".join(log))

# %% [markdown]
# Like brackets: the root is entered first and left last. The maker of hooks matters here. Had the loop made its hooks
# on the spot, from the loop's own variable, all of them would read its last value. Which path would each then note?
#
# ## What each hook is given
#
# Order is half of the protocol; what is handed on is the other half. Two forward hooks change the output: the first
# adds 1, the second multiplies by 10. Predict what comes out for the input 3.

# %%
predict("ch05-handed-on")

# %% [markdown]
# The layer doubles. Look at what the second hook received.


# %%
def plus_one(module, args, output):
    return output + 1


def times_ten(module, args, output):
    print("second hook received", output)
    return 10 * output


layer = Doubling()
layer.register_forward_hook(plus_one)
layer.register_forward_hook(times_ten)
print("result", layer(torch.tensor(3.0)))

# %% [markdown]
# Each hook starts from the result of the one before: (2 · 3 + 1) · 10. The same holds for pre-hooks, and the forward
# hooks are shown the arguments that `forward` really got. A pre-hook's single tensor becomes the only argument, even
# if it could be unpacked. Look at both in one call.


# %%
class Affine(nn.Module):
    def forward(self, x, shift=0.0):
        return 2 * x + shift


affine = Affine()
affine.register_forward_pre_hook(lambda module, args: args[0] + 1)
affine.register_forward_hook(lambda module, args, output: print("hook sees", args, "→", output))
print(affine(torch.tensor([3.0, 4.0]), shift=10.0))

# %% [markdown]
# The keyword went through to `forward` and past both hooks: only those registered with `with_kwargs=True` are given
# it. A pre-hook of that kind has two things to hand back, so it returns a pair, or None. Look at what happens
# otherwise.

# %%
affine = Affine()
handle = affine.register_forward_pre_hook(lambda module, args, kwargs: (args, {"shift": 100.0}), with_kwargs=True)
print(affine(torch.tensor(3.0), shift=10.0))
handle.remove()
affine.register_forward_pre_hook(lambda module, args, kwargs: args[0], with_kwargs=True)
try:
    affine(torch.tensor(3.0))
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# One test decides whether a hook has replaced something: not whether its result is true, but whether it
# `is not None`. A tensor that holds a single zero is false. It replaces the output all the same.

# %%
zeroing = Doubling()
zeroing.register_forward_hook(lambda module, args, output: 0 * output)
print(zeroing(torch.tensor(3.0)), "| true?", bool(torch.tensor(0.0)))

# %% [markdown]
# Who was registered with which option is not stored with the hook. It stands in tables of its own, beside those that
# you know, under the same number: `_forward_pre_hooks_with_kwargs` beside `_forward_pre_hooks`, and for hooks
# `_forward_hooks_with_kwargs` and `_forward_hooks_always_called`. Look at the names; the last line asks whether the
# numbers in two of them agree.

# %%
print([name for name in vars(affine) if name.startswith("_forward")])
print([name for name in vars(tables) if name.startswith("_global_forward") and "_hooks" in name])
print(list(affine._forward_pre_hooks) == list(affine._forward_pre_hooks_with_kwargs))

# %% [markdown]
# ## When something raises
#
# In chapter 4 a hook with `always_call=True` fired although `forward` had raised, and was given None for an output.
# Errors come up in hooks too, and by then some have had their turn. Here are three forward hooks. The first and the
# last ask to be called always, and the one between them raises. Predict who runs, and what the last one is given.

# %%
predict("ch05-always")

# %% [markdown]
# The layer returns the square root of 4. Look at how often each hook reports, and at the last one's output.


# %%
class Root(nn.Module):
    def forward(self, x):
        return x.sqrt()


def raising(*given):
    raise ValueError("a hook")


def last(module, args, output):
    print("last ", output)
    return "saved"


root = Root()
root.register_forward_hook(lambda module, args, output: print("first", output), always_call=True)
root.register_forward_hook(raising)
root.register_forward_hook(last, always_call=True)
try:
    print("the caller gets", root(torch.tensor(4.0)))
except ValueError as error:
    print("the caller gets ValueError |", error)

# %% [markdown]
# The first is not run again: the call keeps a list of those who have had their turn. The last gets the 2 that
# `forward` had returned by then, and cannot save the call: its `"saved"` reaches nobody, the error does. The same net
# is spread under pre-hooks. Register one that raises, and look at what the two hooks are shown now.

# %%
root.register_forward_pre_hook(raising)
try:
    root(torch.tensor(4.0))
except ValueError as error:
    print("ValueError |", error)

# %% [markdown]
# `forward` never ran, the raising hook was not reached, and the other two got None.
#
# Two limits. If an always-hook raises in this second round, its error becomes a warning, so that the first error
# stays visible. And the net catches `Exception`: when you press the stop button, the `KeyboardInterrupt` goes
# straight through. Read it in the source; what the two loops do for each hook is left out here. What does the last line
# do?

# %%
rescue = source[source.index("        try:") :]
print("\n".join(line[8:] for line in rescue if line[8:12].strip() or line[12:16].strip() and "#" not in line))

# %% [markdown]
# You have read the whole call now. Write it: for the hooks of a forward pass, the module's own with all their options,
# and the global ones without. The module's tables have the names printed above; the global ones are
# `tables._global_forward_pre_hooks` and `tables._global_forward_hooks`.

# %% [markdown]
# {{card my_call}}


# %% nbgrader={"grade": false, "grade_id": "my_call", "locked": false, "schema_version": 3, "solution": true, "task": false}
def my_call(module, *args, **kwargs):
    ### BEGIN SOLUTION
    result, had_their_turn = None, set()

    def shown_to(number):
        return (args, kwargs, result) if number in module._forward_hooks_with_kwargs else (args, result)

    try:
        for number, hook in (*tables._global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if number in module._forward_pre_hooks_with_kwargs:
                replaced = hook(module, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(f"a pre-hook with keywords returns None or a pair, not {replaced}")
                    args, kwargs = replaced
            else:
                replaced = hook(module, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        result = module.forward(*args, **kwargs)
        for number, hook in (*tables._global_forward_hooks.items(), *module._forward_hooks.items()):
            had_their_turn.add(number)
            replaced = hook(module, *shown_to(number))
            if replaced is not None:
                result = replaced
        return result
    except Exception:
        for number, hook in list(module._forward_hooks.items()):
            if number in module._forward_hooks_always_called and number not in had_their_turn:
                try:
                    hook(module, *shown_to(number))
                except Exception as another:
                    warnings.warn(f"an always_call hook raised as well: {another}", stacklevel=2)
        raise
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "my_call_check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("my_call", my_call)

# %% [markdown]
# {{hints my_call}}

# %% [markdown]
# ## What forward() skips
#
# Now the other road. You will read that `.forward(x)` breaks autograd, and that the gradients come out silently
# wrong. You know enough to doubt it. Commit yourself first.

# %%
predict("ch05-forward-gradients")

# %% [markdown]
# The same model twice, BatchNorm included: one is called, the other runs through `.forward`. Compare gradients and
# running statistics, bit for bit.

# %%
torch.manual_seed(0)
one = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
other, batch = copy.deepcopy(one), torch.randn(6, 4)
one(batch).square().sum().backward()
other.forward(batch).square().sum().backward()
print("gradients:", all(torch.equal(p.grad, q.grad) for p, q in zip(one.parameters(), other.parameters())))
print("statistics:", torch.equal(one[1].running_mean, other[1].running_mean))

# %% [markdown]
# Autograd listens to tensor operations, and those are the same. What is skipped is what `_call_impl` does: the hooks
# of this one module, global ones included, and a compiled implementation. The children are still called, so theirs
# fire. Look at who is missing.

# %%
log = []
one.register_forward_hook(noting("root"))
one[0].register_forward_hook(noting("child"))
one.forward(batch)
print("forward():", log)
log.clear()
one(batch)
print("call:     ", log)

# %% [markdown]
# ### When it does change the result
#
# So `.forward(x)` is wrong when a hook does work that the result depends on. Now look for the hook in the pruned
# layer of the first page.

# %%
layer = nn.Linear(2, 1, bias=False)
prune.custom_from_mask(layer, "weight", torch.tensor([[1.0, 0.0]]))
(hook,) = layer._forward_pre_hooks.values()
print(type(hook).__name__)
print("weight: parameter", "weight" in layer._parameters, "| plain attribute", "weight" in vars(layer))

# %% [markdown]
# There it is. Pruning keeps the true weight in `weight_orig`, and a pre-hook computes `weight`, a plain attribute,
# before each call. Loading changed the first; `.forward` read the second, as the last call had left it. Your looking
# was a call, and that repaired it for a while.
#
# The old `torch.nn.utils.weight_norm` is built the same way, and deprecated. It keeps a weight as a length and a
# direction. Its successor computes the weight when it is read, without a hook. The lengths are tripled below, under the
# name that each of the two has for them; look at which one notices under `.forward`.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    old = nn.utils.weight_norm(nn.Linear(2, 2))
new = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
with torch.no_grad():
    old.weight_g.mul_(3)
    new.parametrizations.weight.original0.mul_(3)
ones = torch.ones(1, 2)
for name, layer in (("old", old), ("new", new)):
    by_forward = layer.forward(ones)
    print(name, "| pre-hooks:", len(layer._forward_pre_hooks), "| right:", torch.allclose(by_forward, layer(ones)))

# %% [markdown]
# ### What libraries rely on
#
# "Never call forward, the libraries depend on it" is too coarse to debug with. They differ. (FSDP2 and DDP are torch's
# own tools for training on several devices: the first cuts the weights into shards, the second keeps a copy on each.)
#
# | who | what it hangs on | what `.forward(x)` does |
# |---|---|---|
# | pruning, old weight_norm | a pre-hook that computes the weight | uses the weight of the last call, silently |
# | FSDP2 (`fully_shard`) | a pre-hook that gathers the shards, a hook that frees them | raises, because a shard meets a whole tensor |
# | DDP | autograd's own hooks on the parameters, none on modules | `ddp.forward(x)` synchronises; `ddp.module(x)` does not |
# | Accelerate | a `forward` on the instance | runs Accelerate's code as well |
# | parametrizations | a property on the class | works |
# | `module.compile()` | the first line of the call | runs uncompiled, with the same result |
#
# Your own code is on the list too: anybody's hook for statistics, for features, for clipping. Call the module, and
# you never have to know which.
#
# What is still missing is a tool that finds the line in somebody else's code which does not. A hook cannot see it,
# since it is the hook that is passed by. Predict who could.

# %%
predict("ch05-witness")

# %% [markdown]
# Both roads lead through a `forward` that was put on the instance. Look at what it sees, and think about what else it
# has to know to tell one road from the other.

# %%
layer = nn.Identity()
original = layer.forward


def witness(x):
    print("forward runs")
    return original(x)


layer.register_forward_pre_hook(lambda *given: print("a call, and then"))
layer.forward = witness
layer(1)
layer.forward(1)
del layer.forward

# %% [markdown]
# {{card call_order}}


# %% nbgrader={"grade": false, "grade_id": "call_order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def call_order(model, *args, **kwargs):
    ### BEGIN SOLUTION
    events, announced, undo = [], set(), []

    def watch(part, path):
        def enter(module, given):
            events.append(("enter", path))
            announced.add(part)

        def leave(module, given, output):
            events.append(("leave", path))

        original, set_on_instance = part.forward, "forward" in vars(part)

        def forward(*args, **kwargs):
            if part in announced:
                announced.remove(part)
            else:
                events.append(("bypass", path))
            return original(*args, **kwargs)

        def put_back():
            if set_on_instance:
                part.forward = original
            else:
                del part.forward

        part.forward = forward
        undo.append(put_back)
        undo.append(part.register_forward_pre_hook(enter).remove)
        undo.append(part.register_forward_hook(leave, always_call=True).remove)

    for path, part in model.named_modules():
        watch(part, path)
    try:
        model(*args, **kwargs)
    except Exception as error:
        events.append(("error", type(error).__name__))
    finally:
        for step in undo:
            step()
    return events
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "call_order_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("call_order", call_order)

# %% [markdown]
# {{hints call_order}}

# %% [markdown]
# ## torch.compile and hooks
#
# `torch.compile` makes a model faster by turning its call into one program, hooks of the children included. It does so
# once, on the first call. Which compiler then works on the program is the choice of a **backend**. The one named eager
# runs it as it stands, so that you need not wait. Here is a model with one layer.


# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)


net = Net()
compiled = torch.compile(net, backend="eager")
print(tuple(compiled(ones).shape))

# %% [markdown]
# Now, after that first call, a hook is registered on the layer that replaces its output by sevens. Predict who sees
# it.

# %%
predict("ch05-compiled-hook")

# %% [markdown]
# Compare the plain model with the compiled one, and then the compiled one after its programs were thrown away.

# %%
net.layer.register_forward_hook(lambda module, args, output: 0 * output + 7)
plain, before = net(ones), compiled(ones)
torch._dynamo.reset()
for name, output in (("plain", plain), ("compiled", before), ("compiled, after reset", compiled(ones))):
    print(name, "| all sevens:", bool((output == 7).all()))

# %% [markdown]
# By default the compiled program does not watch for hooks that come or go. `skip_nnmodule_hook_guards` in the
# compiler's settings says so:

# %%
print(torch._dynamo.config.skip_nnmodule_hook_guards)

# %% [markdown]
# So register before the first call, or throw the programs away with `torch._dynamo.reset()`. And keep hooks in a compiled
# model plain: one that prints splits the program in two, one that appends to a list may compile anew on every call until
# torch gives up. The net under errors is not spread in there, either: when compiling, the call skips the part with
# `except`.
#
# There are two ways to compile a module, and they differ in what you hold afterwards. Look at the type, and at the
# keys.

# %%
torch._dynamo.reset()
wrapped = torch.compile(Net(), backend="eager")
print(type(wrapped).__name__, list(wrapped.state_dict()))
in_place = Net()
in_place.compile(backend="eager")
print(type(in_place).__name__, list(in_place.state_dict()))

# %% [markdown]
# `torch.compile(net)` returns a wrapper around your model, and a prefix in its file. `net.compile()` stores the
# compiled call in the slot that you met in the very first excerpt of this chapter, `_compiled_call_impl`. What does
# `.forward` do with that slot, and what does a copy?

# %%
print("set:", in_place._compiled_call_impl is not None)
print("set in a deepcopy:", copy.deepcopy(in_place)._compiled_call_impl is not None)

# %% [markdown]
# The slot is not copied and not pickled, and `.forward` never looks at it. A counting backend shows the latter: it is
# asked for a program only when there is something to compile. (In this version of torch `.compile()` on a bare
# built-in, such as an `nn.Sequential`, compiles nothing at all; put it into a class of your own.)

# %%
programs = []


def counting(graph, examples):
    programs.append(graph)
    return graph.forward


torch._dynamo.reset()
counted = Net()
counted.compile(backend=counting)
counted.forward(ones)
after_forward = len(programs)
counted(ones)
print("programs after forward():", after_forward, "| after a call:", len(programs))

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason, so a wrong choice teaches too.

# %%
quiz("ch05-what-breaks")

# %% [markdown]
# The second is about an order that matters in the reading of logs.

# %%
quiz("ch05-where-backward")

# %% [markdown]
# The third is a report from a colleague.

# %%
quiz("ch05-silent-hook")

# %% [markdown]
# The last one is about what a hook leaves to the caller after an error.

# %%
quiz("ch05-rescue")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | a hook does not fire for one module, those of its children do | somebody calls that module's `.forward`: `call_order` names it |
# | no hook of a class ever fires | the class overrides `__call__` |
# | a hook does not fire in a compiled model | it was registered after the first call; reset, or register before |
# | weights are loaded, answers are old until the first call | a pre-hook computes the weight, and `.forward` goes round it |
# | `NotImplementedError`: missing the required "forward" function | `forward` misspelt, indented too far, or written as `__call__` |
# | `RuntimeError`: forward pre-hook must return None or a tuple | a pre-hook with `with_kwargs` that returns no pair |
# | a hook sees other arguments than the caller gave | a pre-hook before it, or a global one |
# | a change to the class's `forward` has no effect on one layer | a `forward` on the instance: look into `vars(layer)` |
# | an instance's `__call__` is ignored | Python looks for it on the class |
# | after an error a log lacks its closing line | the hook lacks `always_call` |
# | keys that start with `_orig_mod.` | the file was written from the wrapper of `torch.compile` |
#
# ## What to read next
#
# - `torch/nn/modules/module.py`: `_call_impl` from top to bottom. You have written it, so that it reads quickly now.
# - `torch/utils/hooks.py`: `BackwardHook`, the two-sided wrap around `forward`.
# - torch's notes on modules and on "nn.Module hooks" with `torch.compile`, for what is kept in a compiled program.
# - Chapter 6, where a container's `forward` is nothing but calls of its children.
