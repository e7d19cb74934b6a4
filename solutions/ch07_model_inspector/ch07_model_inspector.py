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
# # Chapter 7 · The model inspector
#
# A printout of a model tells you what somebody registered. It does not tell you what runs, how often, or with which
# shapes. In this chapter you learn to count a model by hand, to follow shapes through it, and to look at it without
# leaving a trace. You then write an inspector of your own, and build a Transformer block that torch cannot tell from
# its own.
#
# Plan for about two and a half hours: one of reading and predicting, the rest for two exercises.
#
# The first cell loads what you need. Run it now.

# %%
import inspect

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from autograder import check, predict, quiz, recall
from simulations import ModelInspector, show

# %% [markdown]
# ## Two models that print alike
#
# A colleague merged two branches, and the model has been worse since. Here is the class before the merge and after it.
# The head is set up so that you can check the numbers by hand: it returns the last of three features.


# %%
class Before(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)
        self.head = nn.Linear(3, 1)
        self.head.weight.data = torch.tensor([[0.0, 0.0, 1.0]])
        self.head.bias.data = torch.zeros(1)

    def forward(self, x):
        return self.head(self.norm(x))


class After(Before):
    def forward(self, x):
        return self.head(x)


# %% [markdown]
# The first thing anyone does is to print both models. Compare the two printouts, then the two answers to the row
# 1, 2, 3.

# %%
before, after = Before(), After()
row = torch.tensor([[1.0, 2.0, 3.0]])
print(before)
print(after)
print(f"before: {before(row).item():.4f}   after: {after(row).item():.4f}")

# %% [markdown]
# Line by line the same parts, and two different models. Before the merge, the row was normalised to -1.2247, 0,
# 1.2247; now its last number goes straight through. The file loads in both directions as well, and nobody complains.
# Only one place gives it away. Look at who got a gradient.

# %%
print(after.load_state_dict(before.state_dict()))
after(row).sum().backward()
print({name: parameter.grad is not None for name, parameter in after.named_parameters()})

# %% [markdown]
# The norm is registered, counted, saved, handed to the optimizer, and never called. By the end of this chapter you
# have a table that shows it at a glance. First, three questions on what came before.

# %%
recall("ch07")

# %% [markdown]
# ## What a printout shows
#
# This model has one thing of each kind, and its parts are registered in another order than they are used. Before you
# print it, decide which of them will appear.


# %%
class OneOfEach(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(3, 2)
        self.first = nn.ReLU()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros(1))
        self.hidden = [nn.Linear(1, 1)]

    def forward(self, x):
        return self.last(self.first(x * self.scale))


# %% [markdown]
# Your prediction is about the parameter and the buffer, which no line of the class hides.

# %%
predict("ch07-print")

# %% [markdown]
# Read the printout from top to bottom, then the list of what an optimizer would get.

# %%
print(OneOfEach())
print([name for name, _ in OneOfEach().named_parameters()])

# %% [markdown]
# The printout holds child modules, in the order of registration, and nothing else. `scale` is trained and does not
# appear. `last` comes first. The layer in the plain list is in neither list, as in chapter 0. So a part that you miss
# in the printout may well be trained, and a part that you see may never run: for training, ask `named_parameters()`.
#
# What stands in the parentheses is written by each class for itself, in a method called `extra_repr`. Here are torch's
# lines that put a printout together. Which two sources do they draw from?

# %%
lines = inspect.getsource(nn.Module.__repr__).splitlines()
wanted = ("extra_repr()", "_modules.items()", "repr(module)")
print("\n".join(line.strip() for line in lines if any(word in line for word in wanted)))

# %% [markdown]
# Two sources: `extra_repr` and `_modules`. The numbers in `Linear(in_features=3, out_features=2)` are attributes of the
# layer and no shapes that were seen; change the weight and they stay. You can write the method for your own classes,
# and show what a printout leaves out.


# %%
class Shown(OneOfEach):
    def extra_repr(self):
        return f"scale={tuple(self.scale.shape)}, seen={self.seen.item():.0f}"


print(repr(Shown()).splitlines()[1].strip())
layer = nn.Linear(3, 2)
layer.weight = nn.Parameter(torch.zeros(7, 7))
print(layer)

# %% [markdown]
# ## Counting by hand
#
# Counting parameters is arithmetic, and doing it by hand is the fastest way to find a layer with a wrong width. A
# `nn.Linear(inputs, outputs)` holds a weight of outputs × inputs and a bias of outputs. Take the network that has
# learned digits for decades: 784 pixels, 256 hidden values, 10 classes. Work it out on paper first.

# %%
predict("ch07-count")

# %% [markdown]
# Compare each line with yours. The activation has none.

# %%
digits = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
for name, parameter in digits.named_parameters():
    print(name, tuple(parameter.shape), parameter.numel())
print("total:", 256 * 784 + 256, "+", 10 * 256 + 10, "=", sum(p.numel() for p in digits.parameters()))

# %% [markdown]
# The other layers follow from one question: what is shared? A convolution, `nn.Conv2d`, uses one small filter at every
# position, so the size of the picture plays no part: outputs × inputs × height × width, and a bias an output. A norm,
# such as `nn.BatchNorm2d` over the channels of pictures, has two numbers a channel. An embedding is a table of
# rows × columns. Say each number before you read it.

# %%
layers = {
    "8 filters of 3×3 over 3 channels": nn.Conv2d(3, 8, 3),
    "batch norm over 8 channels": nn.BatchNorm2d(8),
    "layer norm over 64 features": nn.LayerNorm(64),
    "100 words, 16 numbers each": nn.Embedding(100, 16),
}
for name, layer in layers.items():
    print(f"{sum(p.numel() for p in layer.parameters()):6,}  {name}")

# %% [markdown]
# 8 · 3 · 9 + 8 = 224. The batch norm shows 16 and holds 33 values: two running statistics of 8 and a counter are
# buffers, which no optimizer steps, and they are not in the count.
#
# One number more is worth having in your head: a float32 value takes 4 bytes. Look at what the digits network needs,
# and what AdamW adds to it: two moments a parameter, and the gradient while you train.

# %%
size = sum(p.numel() * p.element_size() for p in digits.parameters())
print(f"parameters: {size:,} bytes; with gradients and AdamW's moments: {4 * size:,} bytes")

# %% [markdown]
# ## Counting with torch
#
# `parameters()` is a generator: it gives each registered parameter once, frozen ones too, and is empty after one
# walk. For two sums you ask it twice, or make a list. Freezing changes the second sum only.

# %%
digits[0].requires_grad_(False)
everything = list(digits.parameters())
print("total:    ", sum(p.numel() for p in everything))
print("trainable:", sum(p.numel() for p in everything if p.requires_grad))
print("frozen by hand: 784 · 256 + 256 =", 784 * 256 + 256)

# %% [markdown]
# One kind of layer cannot be counted yet. A lazy layer, here `nn.LazyLinear`, learns its input width from the first
# batch, and before that its weight has no shape. Look at the error, and at the count after one call.

# %%
lazy = nn.LazyLinear(2)
try:
    sum(p.numel() for p in lazy.parameters())
except ValueError as error:
    print("ValueError |", str(error).split(".")[0])
lazy(torch.ones(1, 3))
print(sum(p.numel() for p in lazy.parameters()), type(lazy).__name__)

# %% [markdown]
# ## One weight in two rows
#
# A language model often uses one table twice: to read words and to write them. That is one parameter in two modules,
# and a table with one row a module shows it in both. Predict what the total says.

# %%
predict("ch07-tied")

# %% [markdown]
# 100 words with 16 numbers each. Look at the own count of each module, at the total, and at the file's keys.


# %%
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Embedding(100, 16)
        self.write = nn.Linear(16, 100, bias=False)
        self.write.weight = self.read.weight


tied = Tied()
print({name: sum(p.numel() for p in child.parameters()) for name, child in tied.named_children()})
print("total:", sum(p.numel() for p in tied.parameters()), "| keys:", list(tied.state_dict()))

# %% [markdown]
# 1,600 and 1,600 make 1,600. Within one walk each parameter counts once, and each row of a table starts a walk of its
# own. If your rows should add up, you have to say who owns the shared one, as in chapter 2; an inspector shows it in
# both rows and once in the total.

# %% [markdown]
# ## The tree, walked
#
# Four walks cover everything. `children()` gives the direct children, `modules()` every module from the root down, the
# root included, and each has a form with names. Look at the root's path, and at how often the shared layer appears.

# %%
shared = nn.Linear(2, 2)
tree = nn.Sequential(nn.Sequential(shared, nn.ReLU()), shared)
print("children:", [name for name, _ in tree.named_children()])
print("modules: ", [(name, type(module).__name__) for name, module in tree.named_modules()])

# %% [markdown]
# Parents come before their children, and a module met again is passed over: `1` is missing, because that layer has a
# row already, as `0.0`. The shared layer is also why the number of modules says nothing about the number of calls. Ask
# for duplicates and you get them. `apply` takes the other order: children first, so that a parent finds them done.

# %%
print([name for name, _ in tree.named_modules(remove_duplicate=False)])
order = []
tree.apply(lambda module: order.append(type(module).__name__))
print(order)

# %% [markdown]
# A path leads back to its module with `get_submodule`, to its parameter with `get_parameter`, and `set_submodule`
# replaces what is there. Look at the layer before and after; because a path is a place and no object, only one of the
# two places changes.

# %%
print(tree.get_submodule("0.0"), tree.get_parameter("0.0.weight").shape)
tree.set_submodule("0.0", nn.Linear(2, 2, bias=False))
print("0.0:", tree[0][0], "| 1:", tree[1])

# %% [markdown]
# One more tool works on paths. `torch.func.functional_call` runs a module with other tensors in place of its own, by
# name, and leaves the module as it is. With weight 3 and bias 0, the input 1 must give 3.

# %%
one = nn.Linear(1, 1)
kept = one.weight.clone()
print(
    torch.func.functional_call(
        one, {"weight": torch.full((1, 1), 3.0), "bias": torch.zeros(1)}, torch.ones(1, 1)
    ).item()
)
print("its own weight is untouched:", torch.equal(one.weight, kept))

# %% [markdown]
# ## The inspector
#
# Now to the tool. It opens four models and runs a real forward and backward pass through each: a Transformer block, an
# MLP, a small CNN and a tied model. Start with the Transformer block and step through its forward pass: (2, 8, 64) goes
# in. Watch where the shape stays and where it changes. Then open the MLP and find 203,530, and in the tied model
# the parameter that has two places.

# %%
ModelInspector()

# %% [markdown]
# Three numbers to check by hand while you are there. The CNN's second convolution: 16 · 8 · 9 + 16 = 1,168. The block's
# attention: three projections in one matrix, 192 · 64 + 192, and one out of it, 64 · 64 + 64, make 16,640. And the
# block as a whole: with 256 for two norms and 33,088 for the feed-forward part, 49,984.
#
# ## Shapes through a model
#
# How does such a tool see shapes? With what you know from chapter 4: a forward hook on each module. Here is the
# smallest version. Batch of 32, and the middle is what you expect.


# %%
def print_shapes(module, inputs, output):
    print(f"{type(module).__name__:10} {tuple(inputs[0].shape)} → {tuple(output.shape)}")


handles = [module.register_forward_hook(print_shapes) for module in digits.modules()]
digits(torch.zeros(32, 784))
for handle in handles:
    handle.remove()

# %% [markdown]
# `Linear` changes the last dimension and leaves the others alone. The root comes last, because a hook fires when its
# module has finished. So a table in the order of the calls differs from one in the order of `named_modules()`, and a
# table made from calls alone has no row for what was never called.
#
# ### What a hook is handed
#
# `inputs[0].shape` and `output.shape` are fine for a Linear and break on much of the library. An LSTM returns a tuple
# with a tuple in it. Attention is often called by keyword, which a hook does not see unless you ask, as in chapter 4.
# Look at what arrives.

# %%
attention = nn.MultiheadAttention(4, 2, batch_first=True)
attention.register_forward_hook(lambda module, args, output: print("args:", len(args)))
attention.register_forward_hook(lambda module, args, kwargs, output: print("and:", list(kwargs)), with_kwargs=True)
words = torch.zeros(1, 3, 4)
result = attention(words, key=words, value=words)
print(type(result).__name__, [tuple(part.shape) for part in result])
memory = nn.LSTM(4, 5, batch_first=True)(words)
print(tuple(memory[0].shape), [tuple(part.shape) for part in memory[1]])

# %% [markdown]
# Three tensors went in, and the plain hook saw one. A function that collects shapes has to walk through tuples, lists
# and dicts and take the tensors it finds: four kinds of value, one of them "anything else".
#
# ### One row, several calls
#
# A module may be called more than once in a single forward pass. An activation is the usual case: it has no
# parameters, so people make one and use it everywhere. Predict how many shapes a dict by name keeps.

# %%
predict("ch07-calls")

# %% [markdown]
# The dict is keyed by the module's name, as many recorders are. Compare it with the list.

# %%
relu, widths, by_name = nn.ReLU(), [], {}
relu.register_forward_hook(lambda module, args, output: widths.append(output.shape[-1]))
relu.register_forward_hook(lambda module, args, output: by_name.update(relu=output.shape[-1]))
x = torch.zeros(1, 8)
for layer in (nn.Linear(8, 32), nn.Linear(32, 8)):
    x = relu(layer(x))
print(widths, by_name)

# %% [markdown]
# ### Registered and never called
#
# The opposite happens too: a module with parameters that nobody calls. Sometimes that is the bug of the first page.
# Sometimes it is on purpose. This model has attention inside, a head for the answer, and a helper that is used while
# training only. Say which of them will have no call in eval mode; chapter 4 gave away one of them.


# %%
class Helped(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.heads = nn.ModuleDict({"answer": nn.Linear(8, 1), "helper": nn.Linear(8, 3)})

    def forward(self, x):
        x = self.attention(x, x, x)[0]
        answer = self.heads["answer"](x)
        return (answer, self.heads["helper"](x)) if self.training else answer


# %% [markdown]
# Choose before you look.

# %%
predict("ch07-no-call")

# %% [markdown]
# One hook a module, as before, and at the end a question that the recorder of chapter 4 did not ask: who is missing?

# %%
helped, called = Helped().eval(), set()
for name, module in helped.named_modules():
    module.register_forward_hook(lambda module, args, output, name=name: called.add(name))
helped(torch.zeros(1, 3, 8))
print("no call:", [name for name, module in helped.named_modules() if name not in called])

# %% [markdown]
# Three rows without a call, for three reasons. The attention reads `out_proj.weight` and multiplies by itself. `heads` is
# a container that is looked into, and not meant to be called. The helper waits for training mode. So "no call" is a
# question to the reader of the table, and no verdict; and a table that leaves these rows out cannot ask it. Plain
# functions such as `torch.relu` or `+` have no row in any table: they are no modules, and no hook hears of them.
#
# ### The short cut
#
# Whoever wants one hook instead of many takes a global one. Chapter 4 told you where that fails: in eval mode without
# gradients, torch's encoder layer hands its weights to one fused function, unless it finds hooks on itself or its
# children. Global ones it does not look for. Compare how many rows of a table each kind would fill.

# %%
encoder, seen = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), []
with torch.no_grad(), register_module_forward_hook(lambda module, args, output: seen.append("global")):
    encoder(torch.zeros(1, 3, 8))
for module in encoder.modules():
    module.register_forward_hook(lambda module, args, output: seen.append("own"))
with torch.no_grad():
    encoder(torch.zeros(1, 3, 8))
print("modules:", len(list(encoder.modules())), "| global:", seen.count("global"), "| own:", seen.count("own"))

# %% [markdown]
# One against nine; the tenth is `out_proj` again. There is an irony in this: to look at the layer is to change the way
# it runs. Its numbers stay the same up to rounding, with one exception that you will meet at the masks.

# %% [markdown]
# ## Looking without touching
#
# Whoever inspects a model in the middle of training has to give it back as it was. A single call in training mode
# moves the running statistics of every BatchNorm, and freezing does not help: buffers do not ask for gradients. Look at
# the mean after one curious glance.

# %%
norm = nn.BatchNorm1d(1).requires_grad_(False)
norm(torch.tensor([[9.0], [11.0]]))
print("running_mean after a look in training mode:", norm.running_mean.item())
norm.eval()(torch.tensor([[9.0], [11.0]]))
print("after one more in eval mode:               ", norm.running_mean.item())

# %% [markdown]
# So you switch to eval mode, and to `torch.no_grad()` so that no graph is kept, as in every validation loop. And then
# back. Here is the line that most loops end with, on a model in which one norm was left in eval mode on purpose. Look
# at what becomes of it.

# %%
model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
model[1].eval()
model.eval()
with torch.no_grad():
    model(torch.ones(2, 1))
model.train()
print("the frozen norm trains again:", model[1].training)

# %% [markdown]
# `train()` writes the same flag into every module and does not know what was there. Modes belong to modules, one by
# one: note each before, and put each back. The same goes for hooks: remove the handles that you made, all of them, and
# nobody else's.
#
# And do it even if `forward` raises. That is when people inspect a model. Look at how many hooks are left here.

# %%
torch.manual_seed(0)
broken = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1))
handles = [module.register_forward_hook(lambda *seen: None) for module in broken]
try:
    broken(torch.ones(1, 2))
    for handle in handles:
        handle.remove()
except RuntimeError as error:
    print("RuntimeError |", error)
print("hooks left:", sum(len(module._forward_hooks) for module in broken))

# %% [markdown]
# The line that removes them was never reached. Python has a word for lines that must run either way: `finally`. One
# last thing that people expect to be put back and that you need not touch: gradients. A call under `no_grad` writes
# none. And where you do want them gone, `zero_grad()` sets them to `None` since torch 2.0 and not to zero.

# %%
digits[2](torch.ones(1, 256)).sum().backward()
print(digits[2].bias.grad[:3])
digits.zero_grad()
print(digits[2].bias.grad)

# %% [markdown]
# You have everything now. Write the inspector.

# %% [markdown]
# {{card inspect_model}}


# %% nbgrader={"grade": false, "grade_id": "inspect_model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inspect_model(model, *inputs):
    ### BEGIN SOLUTION
    def shapes(value):
        if isinstance(value, torch.Tensor):
            return [tuple(value.shape)]
        if isinstance(value, dict):
            value = list(value.values())
        return [shape for item in value for shape in shapes(item)] if isinstance(value, (list, tuple)) else []

    rows, handles, modes = [], [], {}
    for path, module in model.named_modules():
        row = {"path": path, "type": type(module).__name__, "inputs": [], "outputs": []}
        row["own"] = sum(p.numel() for p in module.parameters(recurse=False))
        row["total"] = sum(p.numel() for p in module.parameters())
        row["buffers"] = [name for name, _ in module.named_buffers(recurse=False)]

        def note(module, args, kwargs, output, row=row):
            row["inputs"].append(shapes([args, kwargs]))
            row["outputs"].append(shapes(output))

        rows.append(row)
        modes[module] = module.training
        handles.append(module.register_forward_hook(note, with_kwargs=True))
    try:
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "inspect_model_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("inspect_model", inspect_model)

# %% [markdown]
# {{hints inspect_model}}

# %% [markdown]
# ## Your own models in the inspector
#
# The inspector of this course opens your models too: `show(model, inputs)` calls the model once, runs backward from
# the mean of its output, and puts everything back. Here is the model of the first page. Find the line that says what
# went wrong in the merge.

# %%
show(after, row)

# %% [markdown]
# A `forward` that raises becomes an event that says where. Here is the broken stack from above: the last thing in it
# is the layer that could not go on, with the shape that it was given.

# %%
show(broken, torch.ones(1, 2))

# %% [markdown]
# Try it on something of yours, in a cell of its own, and put the same model into your `inspect_model`. Where the two
# tables differ, one of them is wrong, or one of them knows something that the other does not.
#
# ## Shapes along a residual path
#
# In the Transformer block you saw a shape leave (2, 8, 64), go wide, and come back. It has to: what a branch returns is
# added to what went in, and that only works between equal shapes. Or does it? Here a branch ends one feature wide by
# mistake. Predict what happens.

# %%
predict("ch07-residual")

# %% [markdown]
# The first sum is the mistake. The second is its worse relative: a batch of 4 numbers and a column of 4 numbers.

# %%
x = torch.zeros(4, 3)
print(tuple((x + nn.Linear(3, 1)(x)).shape))
print(tuple((torch.zeros(4) + torch.zeros(4, 1)).shape))

# %% [markdown]
# Broadcasting makes room for it without a word. In the first case the output's shape is even right, and one number is
# added to all features. The table of your inspector shows it: the branch's last row returns another shape than the
# block took in.
#
# Why add at all? Because of the way back, as you saw in chapter 6: the gradient of x + f(x) is 1 plus that of f. It is
# often said that this solves the vanishing gradient. Take ten layers that each multiply by a factor, and work the
# gradient out for the factors 0.1, -1 and 3 before you run this.

# %%
for factor in (0.1, -1.0, 3.0):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(10):
        y = y + factor * y
    y.backward()
    print(f"branches of {factor:4}: {x.grad.item():,.4f}")

# %% [markdown]
# 1.1¹⁰, 0¹⁰ and 4¹⁰. The identity keeps a gradient alive where small branches alone would leave 0.1¹⁰. It helps, and
# it is no cure: a branch can still cancel it or blow it up, and that is one of the reasons for the norms.
#
# One habit to avoid along a residual path is `x += branch`. In chapter 6 it spoiled a list; here it writes into the
# tensor that the caller passed in. Look at that tensor, and at what autograd says when the input wants a gradient.


# %%
def add_in_place(x):
    x += 0.5 * x
    return x


mine = torch.ones(2)
add_in_place(mine)
print("the caller's tensor:", mine)
try:
    add_in_place(torch.ones(2, requires_grad=True))
except RuntimeError as error:
    print("RuntimeError |", error)

# %% [markdown]
# ## Inside a Transformer block
#
# `nn.TransformerEncoderLayer` has two residual paths: one around attention, one around a feed-forward part. These are
# its parameters for a width of 4, two heads and 8 hidden values. Count them by hand: 48 + 12 + 16 + 4, then
# 32 + 8 + 32 + 4, then four times 4.

# %%
encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
for name, parameter in encoder.named_parameters():
    print(f"{name:26} {tuple(parameter.shape)}")
print("total:", sum(p.numel() for p in encoder.parameters()))

# %% [markdown]
# The number of heads appears in no shape. It only says how the width is cut. Each key is a path: whoever wants to load
# these weights needs modules of the same names, and any class may stand behind a name.
#
# ### Attention by its shapes
#
# Each position asks (query), is asked for (key), and has something to give (value): three projections, stored in one
# matrix of 3 · width rows. The heads then share the features out: with 16 features and 4 heads each gets 4. Here are two
# positions with four features, numbered 0 to 7, for two heads. Look at which numbers each way gives the first head.

# %%
features = torch.arange(8).view(1, 2, 4)
print("cut, then exchange:", features.unflatten(-1, (2, 2)).transpose(1, 2)[0, 0].tolist())
print("only reshape:      ", features.reshape(1, 2, 2, 2)[0, 0].tolist())

# %% [markdown]
# The first head should hold the first half of every position: 0, 1 of the first and 4, 5 of the second. A bare reshape
# has the right shape and gives it the first position alone. No error will ever tell you.
#
# Then every query meets every key in its head: one product a feature, summed, divided by the root of the number of
# features **in a head**, because the sum of that many products has about that variance. Softmax turns the
# scores of a query into weights that sum to 1. Look at the shapes with two rows, five positions and three heads: the
# table of weights is length × length, for each head.

# %%
query = key = value = torch.zeros(2, 3, 5, 4)
scores = query @ key.transpose(-2, -1) / 4**0.5
weights = scores.softmax(-1)
print("weights:", tuple(weights.shape), f"each {weights[0, 0, 0, 0].item():.1f}")
print("mixed:  ", tuple((weights @ value).shape))

# %% [markdown]
# The batch comes first here. `nn.MultiheadAttention` and the encoder layer expect the sequence first unless you say
# `batch_first=True`, and both orders run without an error on the same tensor: a row then attends to other rows of
# the batch. Look at one row alone and among others.

# %%
torch.manual_seed(0)
rows = torch.randn(3, 5, 4)
for batch_first in (True, False):
    attention = nn.MultiheadAttention(4, 2, batch_first=batch_first)
    together, alone = attention(rows, rows, rows)[0][:1], attention(rows[:1], rows[:1], rows[:1])[0]
    print(f"batch_first={batch_first}: the same row, the same answer:", torch.allclose(together, alone, atol=1e-6))

# %% [markdown]
# ### A mask, and what True means
#
# A model that writes from left to right must not look ahead. A mask of length × length says which query may look at
# which key. Boolean masks come in two dialects, and both are torch's. Predict which one your attention layer speaks.

# %%
predict("ch07-mask")

# %% [markdown]
# The same mask, True above the diagonal, goes into both. The first table shows where weight is left. The function gets
# the identity as its values, so that its output is the table of weights. In its last row the mask would leave nothing,
# so only the first two rows are shown.

# %%
ahead, three = torch.ones(3, 3).triu(1).bool(), rows[:1, :3]
attention = nn.MultiheadAttention(4, 2, batch_first=True)
weights = attention(three, three, three, attn_mask=ahead)[1][0]
print("nn.MultiheadAttention:         ", (weights > 0).int().tolist())
same = torch.zeros(3, 4)
mixed = F.scaled_dot_product_attention(same, same, torch.eye(3), attn_mask=ahead)
print("F.scaled_dot_product_attention:", mixed[:2].tolist())

# %% [markdown]
# In `nn.MultiheadAttention` and the encoder layer, True **closes** a place. In `F.scaled_dot_product_attention`, True
# **opens** it. With the wrong dialect a model learns from the future, and its loss looks splendid.
#
# Closed means a weight of zero, so the score has to be minus infinity before softmax. A score of 0 would be an ordinary
# score among others. A float mask says just that: it is **added** to the scores, -inf closes, 0 changes nothing, and 0.5
# favours a place a little. Add 0.5 everywhere and softmax gives the same weights as before. Predict whether
# torch's layer agrees in eval mode.

# %%
predict("ch07-float-mask")

# %% [markdown]
# The mask changes nothing, so each output should equal the one without a mask. Look at the run without gradients.

# %%
encoder.eval()
half = torch.full((5, 5), 0.5)
print("with gradients:", torch.allclose(encoder(rows, half), encoder(rows), atol=1e-5))
with torch.no_grad():
    print("without:       ", encoder(rows, half)[0, 0])

# %% [markdown]
# This is the short cut again. Its fused function takes any mask for a boolean one, and 0.5 is not zero, so every place
# is closed and softmax has nothing left. Masks of 0 and -inf come through unharmed, which is why few people notice.
# `nn.MultiheadAttention` alone leaves its own short cut when a float mask is there. The switch for both is
# `torch.backends.mha.set_fastpath_enabled`. Your block has no short cut and needs none.

# %%
torch.backends.mha.set_fastpath_enabled(False)
with torch.no_grad():
    print("without the short cut:", torch.allclose(encoder(rows, half), encoder(rows), atol=1e-5))
torch.backends.mha.set_fastpath_enabled(True)

# %% [markdown]
# ### Norm before, norm after
#
# The first Transformers normalised each sum; most of today's normalise what enters a branch and leave the sum alone.
# Here are torch's lines for both. Where does the untouched `x` come back in?

# %%
lines = inspect.getsource(nn.TransformerEncoderLayer.forward).splitlines()
first = next(number for number, line in enumerate(lines) if "if self.norm_first" in line)
print("\n".join(line[8:] for line in lines[first : first + 11]))

# %% [markdown]
# A test that needs no arithmetic: `nn.init.zeros_` sets all weights of both branches to zero, so that only norms and sums
# are left. Put in the features 1 and 3, whose norm is -1 and 1, and look at what comes out.

# %%
for norm_first in (False, True):
    layer = nn.TransformerEncoderLayer(2, 1, 2, batch_first=True, norm_first=norm_first).eval()
    for name, parameter in layer.named_parameters():
        if not name.startswith("norm"):
            nn.init.zeros_(parameter)
    print(f"norm_first={norm_first}:", layer(torch.tensor([[[1.0, 3.0]]])).detach().numpy().round(3).tolist())

# %% [markdown]
# With the norm first, the input passes as it is from end to end: the residual path is never normalised. That is why
# such models put one more norm after their last block. With the norm after, the output always has mean 0 and
# variance 1, until the norm's own weights say otherwise.
#
# ### Where the dropouts sit
#
# One number, `dropout`, acts in four places. Three are modules that you can find by walking. The fourth is a plain
# number inside the attention, where it acts on the weights after softmax. Look at both.

# %%
encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.25, batch_first=True)
print([name for name, module in encoder.named_modules() if isinstance(module, nn.Dropout)])
print("in the attention:", encoder.self_attn.dropout)

# %% [markdown]
# So a loop that sets `p` on every `nn.Dropout` reaches three of the four. Two of the places, the attention's weights and
# the hidden values, lie inside a branch; the other two close it. A value of a branch passes two dropouts in
# a row: with p = 0.25 it survives with 0.75 · 0.75 = 0.5625, and is then 1 / 0.5625 = 1.7778 times as large.
#
# Build the block now. You may use torch's parts, or write the attention yourself: what counts is the twelve names and
# what comes out.

# %% [markdown]
# {{card transformer_block}}


# %% nbgrader={"grade": false, "grade_id": "transformer_block", "locked": false, "schema_version": 3, "solution": true, "task": false}
class TransformerBlock(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, norm_first=False):
        super().__init__()
        ### BEGIN SOLUTION
        self.norm_first = norm_first
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, x, mask=None):
        ### BEGIN SOLUTION
        if self.norm_first:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.feed(x))

    def attend(self, x, mask):
        return self.dropout(self.self_attn(x, x, x, attn_mask=mask, need_weights=False)[0])

    def feed(self, x):
        return self.dropout(self.linear2(self.dropout(torch.relu(self.linear1(x)))))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "transformer_block_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("transformer_block", TransformerBlock)

# %% [markdown]
# {{hints transformer_block}}

# %% [markdown]
# ## Where the tensors are
#
# One more thing belongs into every inspection: on which device, and in which dtype. A line that one meets everywhere
# asks the first parameter. Here one of two layers was converted, and the first parameter is glad to report success.

# %%
model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
model[0].to(torch.float64)
print("the first parameter says:", next(model.parameters()).dtype)
homes = {(t.device.type, str(t.dtype)) for t in (*model.parameters(), *model.buffers())}
print(sorted(homes))

# %% [markdown]
# Three homes where one was expected. Collect the set over parameters **and** buffers; and because plain tensors and
# lists are in neither, follow it with one forward pass. The whole number is all right: it is BatchNorm's counter, and
# `.to()` with a floating dtype converts floating tensors only. It also changes the module in place and returns it, so
# `half()` and `.to(torch.float16)` come to the same. Moving to a device works alike, for parameters and buffers.

# %%
print(model.half() is model, sorted({str(t.dtype) for t in model.state_dict().values()}))
print(model.to(torch.bfloat16) is model, sorted({str(t.dtype) for t in model.state_dict().values()}))
print(sorted({t.device.type for t in model.to("meta").state_dict().values()}))

# %% [markdown]
# The `meta` device holds shapes and no numbers. A model of any size can be built there and counted, as in chapter 2:
# an inspection before the memory is paid for.

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason.

# %%
quiz("ch07-idle-layer")

# %% [markdown]
# The second one is arithmetic.

# %%
quiz("ch07-convolution")

# %% [markdown]
# The third is about looking.

# %%
quiz("ch07-validation")

# %% [markdown]
# The last one is about a loss that is too good.

# %%
quiz("ch07-future")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | the printout is right and the answers are not | a registered module without a call: its row has no shapes |
# | a parameter whose gradient stays `None` | the same row, or a branch whose output is not used |
# | a parameter that the printout does not show | `named_parameters()`: bare parameters are not printed |
# | two tools disagree about the size of a model | a tied weight counted once or twice; buffers; frozen ones; a lazy layer |
# | rows that add up to more than the total | a tied weight stands in two rows |
# | a layer of the table with several shapes | one module that is called several times |
# | no row for attention's inside | a leaf filter, or `out_proj`, which is read and never called |
# | the children of an encoder layer are silent in eval mode | the short cut, which global hooks do not prevent |
# | `nan` in eval mode and never in training | a float mask on the short cut, or a row that is closed altogether |
# | a branch that changes the shape, and no error | broadcasting in a residual sum |
# | the loss falls too well | a mask in the other dialect: the model looks ahead |
# | a row's answer depends on its neighbours | `batch_first`, or a BatchNorm in training mode |
# | statistics moved although nobody trained | somebody looked in training mode |
# | a frozen norm that trains again | `train()` after a look, instead of putting each mode back |
#
# ## What to read next
#
# - `torch/nn/modules/module.py`: `named_modules` and `__repr__`, which are short.
# - `torch/nn/modules/transformer.py`: the questions that `TransformerEncoderLayer.forward` asks before its short cut.
# - `torch/nn/modules/activation.py`: `MultiheadAttention.forward`, and in its documentation the entry on `attn_mask`.
# - Chapter 8, where a model leaves Python, and what an inspector sees is no longer what runs.
