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
# # Chapter 8 · JIT and export
#
# Your model is a Python object, and the place where it has to answer may have no Python. In this chapter you take a
# model out of Python in three ways: by a trace, which was the first; by scripting, which came second; and by
# `torch.export`, which is what you use today. You learn what each of them keeps, what it loses, and who tells you.
#
# Plan for about two and a half hours: one of reading and predicting, the rest for three exercises.
#
# The first cell loads what you need. Its last line silences torch's log: a refused export writes pages to it, and here
# you read the first line only. Run it now.

# %%
import contextlib
import copy
import inspect
import io
import logging
import warnings

import torch
from torch import nn
from torch.export import Dim, export

from autograder import check, predict, quiz, recall
from simulations import TraceScriptExport

logging.disable(logging.CRITICAL)

# %% [markdown]
# ## Eight rows, the wrong head
#
# A colleague's model has two heads: a small one for a single row and a large one for batches. The choice is one `if`.
# Read the class.


# %%
class TwoHeads(nn.Module):
    def __init__(self, limit=1):
        super().__init__()
        self.limit = limit
        self.small = nn.Linear(10, 5)
        self.large = nn.Linear(10, 20)

    def forward(self, x):
        if x.shape[0] > self.limit:
            return self.large(x)
        return self.small(x)


# %% [markdown]
# To ship it, somebody traced it with the row that was at hand, and tested it with that row. Look at the two shapes for
# a batch of eight: the model's, and the trace's.

# %%
torch.manual_seed(0)
model = TwoHeads()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    shipped = torch.jit.trace(model, torch.randn(1, 10))
print("model:  ", tuple(model(torch.randn(8, 10)).shape))
print("shipped:", tuple(shipped(torch.randn(8, 10)).shape))

# %% [markdown]
# Twenty columns here, five there, and no error. The `if` is gone: what was shipped knows one head only. Did nobody
# warn? Somebody did, and the third and fourth lines of the cell above threw the warning away.
#
# By the end of this chapter you will know which tool loses what, and how to find out before your users do. First,
# three questions on what came before.

# %%
recall("ch08")

# %% [markdown]
# ## Why a model has to leave Python
#
# A phone, a browser or a server written in C++ cannot run your `forward`. What you know how to save does not help
# there: a `state_dict()` holds numbers and no computation, and a pickled module holds the *name* of its class, as you
# saw in chapter 3. What has to be shipped is the computation itself: a list of operators with their weights, called a
# **graph** or a **program**.
#
# Everything that a program can be turned into starts with that list: machine code for a server (AOTInductor), a file
# for a phone (ExecuTorch), or ONNX for other runtimes. The question of this chapter comes before all of them: how is
# the list made from your Python, and does it still mean the same?
#
# ## What a trace keeps
#
# A **trace** is a record: torch runs `forward` with an example and notes each operator. Here is the smallest model
# with a decision, and a helper that traces quietly and hands you the warnings instead of showing them.


# %%
class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return -x


def traced_with(model, example):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return torch.jit.trace(model, example), caught


# %% [markdown]
# `Gate` doubles what is positive on the whole and negates the rest, so -3 becomes 3. The trace is made with 2. What does
# it make of -3?

# %%
predict("ch08-traced-if")

# %% [markdown]
# Run both, then read the code that the trace holds. How many branches does it have?

# %%
gate = Gate()
trace, caught = traced_with(gate, torch.tensor([2.0]))
print("model:", gate(torch.tensor([-3.0])).item(), "| trace:", trace(torch.tensor([-3.0])).item())
print(trace.code)

# %% [markdown]
# One multiplication, by a constant, and nothing else. The negation was never run, so it was never noted. Step through
# the simulation: it carries this very function out of Python in four ways and then gives all of them the same four
# inputs. Look at the line that the trace did not reach, and at the column that differs from Python. You will meet
# the other columns in this chapter one by one.

# %%
TraceScriptExport()

# %% [markdown]
# A loop is a decision too: go on, or stop? This one adds up the values of its input. Predict what a trace made with two
# values does with five.

# %%
predict("ch08-loop")

# %% [markdown]
# Five ones should add up to 5. Look at the answer of the trace, and at how many additions it noted.


# %%
class AddUp(nn.Module):
    def forward(self, x):
        total = torch.zeros(())
        for i in range(x.shape[0]):
            total = total + x[i]
        return total


trace, loop_warnings = traced_with(AddUp(), torch.ones(2))
print("model:", AddUp()(torch.ones(5)).item(), "| trace:", trace(torch.ones(5)).item())
print("additions noted:", trace.code.count("torch.add"))

# %% [markdown]
# The loop was unrolled: two rounds were run, so two additions were noted. The other three values are ignored.
#
# The mode is a decision as well, hidden in a flag that chapter 3 is about. Trace a dropout in eval mode, switch the
# trace to training, and look at whether anything is dropped.

# %%
trace, _ = traced_with(nn.Sequential(nn.Dropout(0.5)).eval(), torch.ones(1000))
trace.train()
print("says it is training:", trace.training, "| zeros:", int((trace(torch.ones(1000)) == 0).sum()))

# %% [markdown]
# The flag moved, the program did not: `training` was read once, while the trace was made.
#
# You may read that tracing "runs your model once". Count it. The module below counts twice: in a plain list, which only
# Python can do, and in a buffer, the way chapter 3 recommends. Look at how far the two are apart.


# %%
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        python_runs.append(1)
        self.calls += 1
        return x * 2


python_runs, counting = [], Counts()
trace, _ = traced_with(counting, torch.ones(2))
print("Python runs:", len(python_runs), "| buffer:", counting.calls.item())
trace(torch.ones(2))
print("Python runs:", len(python_runs), "| buffer:", counting.calls.item(), "after one call of the trace")

# %% [markdown]
# Your Python ran three times: once to record, once for the answer to compare with, once to record again. The two records
# ran once each, and both hold the `+= 1`, which makes five. All this is the check that is on by default
# (`check_trace=True`). It uses the *same* example, which is why it finds no forgotten branch.
#
# The last line shows a second thing to know. The trace is no Python any more, so the list stands still; but it has no
# buffers and no weights of its own. It counts in the tensors of your model.
#
# Some things cannot be noted at all. A trace maps tensors to tensors; what else you return is refused. Here is a helper
# for the rest of the chapter: it runs something and, if it raises, prints the type and the first line, or
# the part of the message that begins with certain words.


# %%
def told(action, word=""):
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return action()
        except Exception as error:
            line = next(line for line in str(error).strip().splitlines() if word in line)
            print(type(error).__name__, "|", line[line.index(word) :].strip()[:78])


class Labels(nn.Module):
    def forward(self, x):
        return {"doubled": x * 2}


told(lambda: traced_with(Labels(), torch.ones(1)))

# %% [markdown]
# A dict is refused unless you pass `strict=False`; a text is refused always. So a trace does not "work with any code":
# it wants tensors in, tensors out, and one path between them.
#
# ## What the tracer says, and what it does not
#
# You have kept the warnings of the traces above. Before you look at them: three models decide something in Python, each
# in its own way. Which of the decisions does the tracer warn about?

# %%
predict("ch08-silent")

# %% [markdown]
# `Gate` decides by a sum of values, `AddUp` by the number of rows, and `ByAxes`, new here, by the number of axes.
# Look at the number of warnings of each.


# %%
class ByAxes(nn.Module):
    def forward(self, x):
        return x * (2.0 if x.dim() == 2 else 3.0)


def tracer_warnings(caught):
    return sum(issubclass(entry.category, torch.jit.TracerWarning) for entry in caught)


axes_trace, axes_warnings = traced_with(ByAxes(), torch.ones(2, 2))
for name, kept in (("Gate", caught), ("AddUp", loop_warnings), ("ByAxes", axes_warnings)):
    print(f"{name:7}", "warned" if tracer_warnings(kept) else "silent")

# %% [markdown]
# Only `Gate` made a Python bool out of a *tensor*, and that is the moment at which the tracer speaks. A size that feeds
# a `range` is followed in silence, and `x.dim()` is a plain number. Yet all three traces are wrong for the next input.
# Look at `ByAxes` with three axes: 3.0 is due.

# %%
print("model:", ByAxes()(torch.ones(1, 1, 1)).item(), "| trace:", axes_trace(torch.ones(1, 1, 1)).item())
first = next(entry for entry in caught if issubclass(entry.category, torch.jit.TracerWarning))
print(str(first.message).split(".")[0])

# %% [markdown]
# The reverse holds too: a warning need not mean harm. If all your inputs lie on one side of the `if`, the trace of
# `Gate` is right for every one of them. So a warning is a reason to look, silence is no reason to trust, and the only
# judge is a comparison on inputs like those that will come. Write that judge.

# %% [markdown]
# {{card is_trace_faithful}}


# %% nbgrader={"grade": false, "grade_id": "is_trace_faithful", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_trace_faithful(model, example, others):
    ### BEGIN SOLUTION
    mine = copy.deepcopy(model).eval()
    try:
        trace = torch.jit.trace(mine, example)
        for x in others:
            expected, answer = mine(x), trace(x)
            if expected.shape != answer.shape or not torch.allclose(expected, answer, equal_nan=True):
                return False
    except RuntimeError:
        return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "is_trace_faithful_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("is_trace_faithful", is_trace_faithful)

# %% [markdown]
# {{hints is_trace_faithful}}

# %% [markdown]
# ## Scripting, which is history
#
# The second way did not run your code but read it: `torch.jit.script` compiles the source of `forward`, in a subset of
# Python called TorchScript. You will meet it in older projects. Look at what it keeps of `Gate`.

# %%
with warnings.catch_warnings(record=True) as script_warnings:
    warnings.simplefilter("always")
    scripted = torch.jit.script(Gate())
    two_heads = torch.jit.script(TwoHeads())
print(scripted.code)
print([tuple(two_heads(torch.ones(rows, 10)).shape) for rows in (1, 4)])
print("prim::If in the graph:", "prim::If" in str(two_heads.graph))

# %% [markdown]
# Both branches are there, and both heads answer. For this reason you still find the advice "if tracing loses your `if`,
# use scripting". It is out of date. Look at what every entry point of TorchScript says today; Python hides this kind of
# warning unless asked, so that you may never have seen it.

# %%
told_already = dict.fromkeys(str(entry.message) for entry in [*caught, *script_warnings])
print("\n".join(text for text in told_already if text.startswith("`torch.jit")))

# %% [markdown]
# On Python 3.14 and later the text is harsher. You need not have that version to read it: here are torch's own lines.

# %%
source = inspect.getsource(torch.jit.script).splitlines()
print("\n".join(line.strip() for line in source if "3, 14" in line or "not supported" in line))

# %% [markdown]
# Scripting also never took all of Python: no `**kwargs`, no arbitrary objects, one type for each variable. A pattern that
# you like from chapter 6, a head chosen by name from a `ModuleDict`, is refused.


# %%
class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 3)})

    def forward(self, x, name: str):
        return self.heads[name](x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    told(lambda: torch.jit.script(ByName()))

# %% [markdown]
# What was scripted or traced is saved with its own `.save` and read with `torch.jit.load`, in C++ too; plain `torch.load`
# refuses such a file. If you inherit one, that is how to open it. For anything new, read on.
#
# ## What torch.export returns
#
# `torch.export` also runs your `forward`, but with tensors that have shapes and no values, and it keeps account of
# everything it had to assume. Where it assumed something about the input, it writes down a **guard**. Export the
# model of the first page with the same single row. What will the program do with eight rows?

# %%
predict("ch08-export-other-rows")

# %% [markdown]
# Look at the type, at the answer to one row, and at what happens with eight.

# %%
program = export(TwoHeads(), (torch.randn(1, 10),))
run = program.module()
print(type(program).__name__, "|", tuple(run(torch.randn(1, 10)).shape))
told(lambda: run(torch.randn(8, 10)))

# %% [markdown]
# This is the difference that matters. Export, too, took one branch and dropped the other, and fixed the size to 1. But
# the program *checks*, and refuses what it was not made for. A loud error on day one, not a wrong head for a month.
#
# What is in the program? A list of operators whose inputs are the weights, by name, and your tensor. Print it.


# %%
def steps(program):
    for node in program.graph.nodes:
        if node.op == "call_function":
            print(f"{node.name} = {node.target}{node.args}")


steps(program)
print(list(program.state_dict))

# %% [markdown]
# One operator. The tree of modules is gone: what is left is one flat list. The names are kept, even those of the head
# that is never used, so that a checkpoint of the model fits the program. Mind what that means for a wrapper: an
# export of something that holds your model as `self.model` has `model.small.weight` and so on.
#
# The program is a document, not a function. `module()` gives you something to call; the program itself declines. Here
# are torch's lines for it.

# %%
source = inspect.getsource(type(program).__call__).splitlines()
print("\n".join(line.strip() for line in source[1:]))

# %% [markdown]
# Hooks are not forgotten, by the way. Export calls your modules as chapter 5 describes, so that a hook which changes
# an output runs while the list is made, and what it did is in the list. Look for the multiplication.

# %%
layer = nn.Linear(2, 2)
layer.register_forward_hook(lambda module, args, output: output * 10)
steps(export(nn.Sequential(layer), (torch.ones(1, 2),)))

# %% [markdown]
# ## One program for any number of rows
#
# A program for one batch size is rarely what you want. With `dynamic_shapes` you declare which sizes are free: for each
# input, by name, a dict from axis to `Dim`. `Dim.AUTO` means "free, if you can". Look at the range that results for
# a plain layer.

# %%
program = export(nn.Linear(10, 5), (torch.randn(8, 10),), dynamic_shapes={"input": {0: Dim.AUTO}})
print([str(sizes) for sizes in program.range_constraints.values()])
print([tuple(program.module()(torch.randn(rows, 10)).shape) for rows in (1, 2, 300)])

# %% [markdown]
# The name in the dict is the name of `forward`'s argument. The range reads: from 2 to infinity; you will hear about the
# missing 1 in a moment.
#
# Now the model with two heads, with the limit at 3: small up to three rows, large from four on. It is shown
# eight rows, and the rows are declared free. An `if` stands in the way: look at what each declaration makes of it.

# %%
rows = torch.randn(8, 10)
program = export(TwoHeads(limit=3), (rows,), dynamic_shapes={"x": {0: Dim.AUTO}})
print("AUTO:", [str(sizes) for sizes in program.range_constraints.values()])
told(lambda: program.module()(torch.randn(1, 10)))
told(lambda: export(TwoHeads(limit=3), (rows,), dynamic_shapes={"x": {0: Dim("batch")}}))

# %% [markdown]
# `Dim.AUTO` gives way: the program is for four rows and more, and guards that. A named `Dim("batch")` does not: you said
# that every size is fine, the `if` says it is not, and the export is refused. Use a named one when you want to hear
# about it. `Dim.DYNAMIC` insists as well.
#
# ## Zero and one are special
#
# Back to the limit of 1 that the model really has. It is shown eight rows, and the rows are free. Then a single row
# arrives. You know three ways in which this can end by now; which one is it?

# %%
predict("ch08-one-row")

# %% [markdown]
# Five columns are right for one row. Look at what the program says, and whether it says anything.

# %%
program = export(TwoHeads(limit=1), (rows,), dynamic_shapes={"x": {0: Dim.AUTO}})
print("range:", [str(sizes) for sizes in program.range_constraints.values()])
print("model:  ", tuple(TwoHeads(limit=1)(torch.randn(1, 10)).shape))
print("program:", tuple(program.module()(torch.randn(1, 10)).shape))

# %% [markdown]
# The wrong head, in silence: the bug of the first page, with the new tool. While it works out a free size, export assumes
# that it is at least 2, because 0 and 1 behave differently from all other sizes (a size of 1 broadcasts). Under that
# assumption `x.shape[0] > 1` is simply true, so there is nothing to guard. It is the one place where export's
# bookkeeping has a hole, and `Dim("batch")` falls into it too.
#
# The other side of the same rule: an example with a single row tells export that the size *is* 1. Look at what
# the two declarations make of a plain layer then.

# %%
one = torch.randn(1, 10)
program = export(nn.Linear(10, 5), (one,), dynamic_shapes={"input": {0: Dim.AUTO}})
told(lambda: program.module()(rows))
told(lambda: export(nn.Linear(10, 5), (one,), dynamic_shapes={"input": {0: Dim.DYNAMIC}}))

# %% [markdown]
# `AUTO` fixes the size to 1 without a word, `DYNAMIC` refuses. Two habits follow: show an export at least two rows, and
# try every program with one.
#
# ## A decision inside the program
#
# So far the decisions were about sizes. `Gate` decides by values, and while exporting there are none. Look at
# what export says.

# %%
told(lambda: export(Gate(), (torch.ones(2),)))

# %% [markdown]
# "Data-dependent" is the word to remember: the `if` depends on data that nobody has yet. Nothing is guessed, nothing is
# baked in. What you want is that the program itself decides, with an operator that holds both branches. That is
# `torch.cond`: a tensor that is true or false, a function for true, a function for false, and their inputs.


# %%
class CondGate(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: -t, (x,))


program = export(CondGate(), (torch.ones(1),))
steps(program)
print([program.module()(torch.tensor([value])).item() for value in (2.0, -3.0)])

# %% [markdown]
# The decision is in the list, each branch is a list of its own, and only the chosen one runs. (The last line takes the
# result out of a tuple.) It works outside of an export as well, so that you can write your model this way from the
# start.
#
# So write the model of the first page this way: the condition is the number of rows, the functions are the two heads. One
# returns 5 columns, the other 20. What will export say to that?

# %%
predict("ch08-two-widths")

# %% [markdown]
# Eight rows are shown, rows are free. Try one, two and eight, and look at the ranges: which of them is new?


# %%
class TwoHeadsInside(TwoHeads):
    def forward(self, x):
        return torch.cond(x.shape[0] > self.limit, self.large, self.small, (x,))


program = export(TwoHeadsInside(limit=1), (rows,), dynamic_shapes={"x": {0: Dim.AUTO}})
print([tuple(program.module()(torch.randn(count, 10)).shape) for count in (1, 2, 8)])
print([str(sizes) for sizes in program.range_constraints.values()])

# %% [markdown]
# The bug of the first page is mended: the right head for every number of rows, a single one included, in one program. The
# width of the result depends on the branch, so it became a size that is known when the program runs, from 5 to 20.
#
# `torch.cond` is still young, and its documentation asks for branches of one shape. Your torch is more lenient, as you
# have just seen, so write a test where you rely on it. What must agree in any case is the structure, the number
# of axes and the dtype. And no branch may hand back its input as it is. Look at the two refusals; for once the reason
# is not in the first line.


# %%
class Refused(nn.Module):
    def __init__(self, otherwise):
        super().__init__()
        self.otherwise = otherwise

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t * 2, self.otherwise, (x,))


told(lambda: export(Refused(lambda t: t.sum()), (torch.ones(3),)), "expected same")
told(lambda: export(Refused(lambda t: t), (torch.ones(3),)), "Encountered")

# %% [markdown]
# The first message is about axes, one against none. The second says "aliasing": input and output would be one tensor, and
# `t.clone()` is the way out.
#
# The condition has to be something that the program can compute. If rows are *not* free, `x.shape[0] > 1` is a plain
# Python bool, and then one branch is taken on the spot. This time somebody says so.

# %%
with warnings.catch_warnings(record=True) as noted:
    warnings.simplefilter("always")
    steps(export(TwoHeadsInside(limit=1), (rows,)))
print(str(noted[0].message).split(". If")[0])

# %% [markdown]
# One last remark is about cost. `torch.where` exports too, and chooses by values, but both sides are computed every time.
# For two cheap expressions that is fine. For two networks it is twice the work.
#
# And what about a choice that is no tensor at all, the name of a head? Export takes the Python value as a fact and
# guards it. Look at the second call.

# %%
program = export(ByName(), (torch.ones(1, 2), "a"))
print(tuple(program.module()(torch.ones(1, 2), "a").shape))
told(lambda: program.module()(torch.ones(1, 2), "b"))

# %% [markdown]
# One program for each head, then. That is often what you want anyway.
#
# ## A program has one mode
#
# In which mode is the program of a model that was never told? A new module is in training mode. Look at the zeros, and at
# what the program says to `eval()`.

# %%
torch.manual_seed(0)
program = export(nn.Sequential(nn.Dropout(0.5)), (torch.ones(8),))
print("zeros:", int((program.module()(torch.ones(8)) == 0).sum()))
told(lambda: program.module().eval())

# %% [markdown]
# The mode was read while the list was made, as in a trace; but this time the switch admits that it does nothing.
# Set the mode *before* you export. And if the model is somebody's who is still training it, put it back, or work on
# a copy.
#
# You have now met everything that the second exercise asks for: a decision by values, free rows, an example that may
# have a single row, names, and a mode. Its model is a `Router`: it stands at the top of the answer cell.

# %% [markdown]
# {{card make_exportable}}


# %% nbgrader={"grade": false, "grade_id": "make_exportable", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Router(nn.Module):  # given: leave it as it is
    def __init__(self, features, hidden, threshold):
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.calm = nn.Linear(features, 2)
        self.loud = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 2))
        self.threshold = threshold

    def forward(self, x):
        x = self.dropout(x)
        if x.abs().mean() > self.threshold:
            return self.loud(x)
        return self.calm(x)


class ExportableRouter(Router):
    def forward(self, x):
        ### BEGIN SOLUTION
        x = self.dropout(x)
        return torch.cond(x.abs().mean() > self.threshold, self.loud, self.calm, (x,))
        ### END SOLUTION


def make_exportable(model, example):
    ### BEGIN SOLUTION
    exportable = ExportableRouter(model.calm.in_features, model.loud[0].out_features, model.threshold)
    exportable.load_state_dict(model.state_dict())
    exportable.to(example.device).eval()
    two_or_more = torch.cat([example, example])
    return export(exportable, (two_or_more,), dynamic_shapes={"x": {0: Dim.AUTO}})
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "make_exportable_check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("make_exportable", make_exportable)

# %% [markdown]
# {{hints make_exportable}}

# %% [markdown]
# ## A file without a class
#
# `torch.export.save` writes a program, with its weights, into a file that ends in `.pt2`; `torch.export.load` reads it.
# The proof that nothing of your Python is needed: save a model twice, as a program and as a pickle, and delete its
# class. Look at which file still answers.


# %%
class Doubler(nn.Module):
    def forward(self, x):
        return x * 2


as_program, as_pickle = io.BytesIO(), io.BytesIO()
torch.export.save(export(Doubler(), (torch.ones(3),)), as_program)
torch.save(Doubler(), as_pickle)
del Doubler
for file in (as_program, as_pickle):
    file.seek(0)
print(torch.export.load(as_program).module()(torch.ones(3)).tolist())
told(lambda: torch.load(as_pickle, weights_only=False))

# %% [markdown]
# The guards and free sizes are in the file too. Every load gives you a program of its own: what one caller does to its
# buffers, another does not see.
#
# ## Buffers that change
#
# A program may keep state. Here are two buffers that `forward` updates in the two ways of chapter 3: one in place, one by
# binding its name to a new tensor. Export has a second mode, `strict=True`, which reads your Python more closely and
# therefore sounds safer. Look at what each of the two programs keeps after two calls.


# %%
class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("in_place", torch.zeros(1))
        self.register_buffer("bound_anew", torch.zeros(1))

    def forward(self, x):
        self.in_place += x
        self.bound_anew = self.bound_anew + x
        return x * 2


warnings.simplefilter("ignore", UserWarning)
for strict in (False, True):
    run = export(Keeps(), (torch.ones(1),), strict=strict).module()
    run(torch.ones(1)), run(torch.ones(1))
    print("strict" if strict else "default", {name: value.item() for name, value in run.named_buffers()})

# %% [markdown]
# Both ways survive the default. The strict mode loses the rebinding, with a warning about "side effects" that is easy to
# overlook (the cell above does). One more reason to update a buffer in place, and to compare the buffers of a program
# with the model's after a few calls.
#
# ## The program and the model share their tensors
#
# You have exported a model that counts, and you try the program before you save it. A careful habit. Whose counter
# moves?

# %%
predict("ch08-shared")

# %% [markdown]
# The model itself is never called below. Look at its count, and at the count of a program that is loaded from a file
# written afterwards.

# %%
counting = Counts()
program = export(counting, (torch.ones(2),))
program.module()(torch.ones(2))
program.module()(torch.ones(2))
file = io.BytesIO()
torch.export.save(program, file)
file.seek(0)
print("model:", counting.calls.item(), "| file:", torch.export.load(file).module().calls.item())

# %% [markdown]
# An export copies no tensor: until it is saved, the program works on your model's weights and buffers. If you want to
# try it first, export a copy of the model, or try what you loaded. The third exercise is about the whole way.

# %% [markdown]
# {{card export_round_trip}}


# %% nbgrader={"grade": false, "grade_id": "export_round_trip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save_program(model, example, path):
    ### BEGIN SOLUTION
    mine = copy.deepcopy(model).eval()
    program = export(mine, (example,), dynamic_shapes={"x": {0: Dim.AUTO}})
    torch.export.save(program, path)
    ### END SOLUTION


def load_program(path):
    ### BEGIN SOLUTION
    return torch.export.load(path).module()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "export_round_trip_check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("export_round_trip", save_program, load_program)

# %% [markdown]
# {{hints export_round_trip}}

# %% [markdown]
# ## Export, compile, ONNX
#
# Three names that are often mixed up. `torch.export` makes a program that leaves the process. `torch.compile`, which
# you met in chapter 5, makes your model faster *within* it: it takes any callable, falls back to Python where it cannot
# follow, compiles again when its assumptions fail, and writes no file for you to ship. A model built from well-named
# modules helps both: readable names in the program, places for hooks.
#
# > **ONNX, in a box**
# >
# > ONNX is a format for graphs that many runtimes read. `torch.onnx.export` once traced your model and shared all the
# > losses of a trace. Since torch 2.9 it goes through `torch.export` first, so that everything in this chapter
# > applies: an `if` on values is refused instead of baked in, and a `torch.cond` becomes ONNX's own `If`. It needs
# > the package `onnxscript`, which this course does not install. The old way is still there as `dynamo=False`, with
# > a deprecation warning.
#
# You can read the default off the signature. It is the argument called `dynamo`.

# %%
print("dynamo =", inspect.signature(torch.onnx.export).parameters["dynamo"].default)

# %% [markdown]
# ## Quiz
#
# Four questions. Each wrong answer comes with its reason.

# %%
quiz("ch08-traced-at-one")

# %% [markdown]
# The second is about a model in production that is too random.

# %%
quiz("ch08-eval-later")

# %% [markdown]
# The third is about choosing an operator.

# %%
quiz("ch08-two-networks")

# %% [markdown]
# The last one is about which file to send.

# %%
quiz("ch08-which-file")

# %% [markdown]
# ## What you can now debug
#
# | what you see | where to look first |
# |---|---|
# | right for the example, wrong shape or head for other inputs | a trace: compare it with the model on other inputs |
# | a sum or a sequence that stops early after tracing | a loop that was unrolled to the example's length |
# | `TracerWarning: Converting a tensor to a Python boolean` | an `if` on a tensor; find out which inputs take the other side |
# | `AssertionError: Guard failed: x.size()[0] == …` | an export with fixed sizes: declare `dynamic_shapes` |
# | `Guard failed: x.size()[0] == 1` although the rows were declared free | an example with a single row |
# | right for batches, wrong for one row, no error | the assumption that a free size is at least 2 |
# | `Constraints violated` | an `if` on a size that you declared free without limits |
# | `GuardOnDataDependentSymNode` | an `if` on values: `torch.cond` |
# | `Calling eval() is not supported yet` | the model was in training mode when it was exported |
# | `Unable to call ExportedProgram directly` | a program instead of its `module()` |
# | a counter in the file that starts too high | a program that was tried before it was saved |
# | a buffer that stands still after loading | a rebinding, exported with `strict=True` |
# | `Can't get attribute …` when a model file is opened | a pickled module: its class is not there |
# | `torch.jit… is deprecated` | code from before torch.export; the ideas of this chapter replace it |
#
# ## What to read next
#
# - `torch/export/exported_program.py`: `ExportedProgram`, with its graph signature and range constraints.
# - torch's tutorial pages on `torch.export` and on `torch.cond`, for nested inputs and for loops.
# - `torch/jit/_trace.py`, once, to see how a trace checks itself.
# - Chapter 9, in which a model of your own is built, trained, inspected, exported and loaded again.
