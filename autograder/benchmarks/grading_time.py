"""How long an instructor waits for a class, and what it takes: beside stock ``nbgrader autograde`` in the same run.

Every class is generated, and everything in it is graded for the first time: no two submissions are alike, and nothing
is in the store. Each run is measured once, from the start of its command to its end. A machine that does other work
slows all of them; the ratios stand for more than the seconds do.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from autograder.benchmarks import Row
from autograder.benchmarks.generated_class import make_class, submission

CHAPTER = "ch03_buffers_and_state"
STOCK = "stock nbgrader autograde"
MEGABYTE = 2**20
AT_ONCE = 4


class Taken(NamedTuple):
    """What one run took: seconds by the clock, and seconds of processors, of it and of everything that it started."""

    wall: float
    processor: float


def rows(root: Path, sizes: Sequence[int] = (20, 200), stock_sizes: Sequence[int] = (20,)) -> Iterator[Row]:
    """Yield rows for classes of these sizes; the peer, which takes over two seconds a submission, at its own sizes."""
    with tempfile.TemporaryDirectory(prefix="grading-time-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        stock = {size: _stock(root, folder, size) for size in stock_sizes}
        ours = {size: _ours(root, folder, size, 2) for size in sizes}
        for size, taken in ours.items():
            yield from _beside_stock(size, taken, stock)
        least = min(sizes)
        one = _ours(root, folder, least, 1)
        yield Row(f"class of {least}, 1 worker, wall", one.wall, ours[least].wall, "2 workers", "", "s")
        for size in sorted(ours)[1:]:
            per, per_least = ours[size].wall / size, ours[least].wall / least
            yield Row(f"one of {size}, wall", per, per_least, f"one of {least}", "aim: not above 1", "s")
        yield from _floor(folder, max(sizes), ours[max(sizes)])
        yield from _dask(root, folder, least, ours[least])
        yield from _memory(root, folder)


def _beside_stock(size: int, taken: Taken, stock: dict[int, Taken]) -> Iterator[Row]:
    aim = "aim: 0.05"
    if size in stock:
        yield Row(f"class of {size}, 2 workers, wall", taken.wall, stock[size].wall, STOCK, aim, "s")
        yield Row(f"class of {size}, 2 workers, processor", taken.processor, stock[size].processor, STOCK, "", "s")
    elif stock:
        most = max(stock)
        name = f"{STOCK}, one of {most}: {size} were not measured"
        yield Row(f"one of {size}, 2 workers, wall", taken.wall / size, stock[most].wall / most, name, aim, "s")
        ours, theirs = taken.processor / size, stock[most].processor / most
        yield Row(f"one of {size}, 2 workers, processor", ours, theirs, name, "", "s")


def _stock(root: Path, folder: Path, size: int) -> Taken:
    course = make_class(root, folder / f"stock{size}", CHAPTER, size, stock=True)
    return _timed(course, "nbgrader", "autograde", CHAPTER)


def _ours(root: Path, folder: Path, size: int, jobs: int) -> Taken:
    course = make_class(root, folder / f"ours{size}-{jobs}", CHAPTER, size)
    return _timed(course, "autograder.cli", "grade", CHAPTER, "--jobs", str(jobs))


def _timed(course: Path, *command: str) -> Taken:
    began, before = time.perf_counter(), _processor_of_children()
    done = subprocess.run([sys.executable, "-m", *command], cwd=course, capture_output=True, text=True)
    taken = Taken(time.perf_counter() - began, _processor_of_children() - before)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
    return taken


def _processor_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _floor(folder: Path, size: int, ours: Taken) -> Iterator[Row]:
    command = [sys.executable, "-m", "autograder.benchmarks.cells_alone", folder / f"ours{size}-2", CHAPTER]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    alone = json.loads(said.strip().splitlines()[-1])
    name = "the cells alone in a warm process"
    yield Row(f"one of {size}, processor", ours.processor / size, alone["processor"] / size, name, "the floor", "s")


def _dask(root: Path, folder: Path, size: int, ours: Taken) -> Iterator[Row]:
    try:
        from dask.distributed import LocalCluster
    except ImportError:
        return
    course = make_class(root, folder / "dask", CHAPTER, size)
    space = folder / "dask-space"
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(space)
    ) as cluster:
        address = cluster.scheduler_address
        taken = _timed(course, "autograder.cli", "grade", CHAPTER, "--scheduler", address)
    name = "2 workers of our own"
    yield Row(f"class of {size}, 2 Dask workers, wall", taken.wall, ours.wall, name, "", "s")


def _memory(root: Path, folder: Path) -> Iterator[Row]:
    """Hold several submissions at once, each after its last cell, as forks of one warm parent and as cold kernels."""
    course = make_class(root, folder / "memory", CHAPTER, 0)
    notebook = submission(course, CHAPTER, "right")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    own, proportional = _held_warm(course, cells)
    cold_own, cold_proportional = _held_cold(cells, folder)
    name, what = f"a cold kernel ({AT_ONCE} at once)", "memory of one submission"
    yield Row(f"{what}, proportional", proportional, cold_proportional, name, "aim: at most 50", "MB")
    yield Row(f"{what}, its own pages", own, cold_own, name, "", "MB")


def _held_warm(course: Path, cells: Sequence[str]) -> tuple[float, float]:
    from autograder.grading.assignment import preload_of
    from autograder.grading.sandbox import Sandbox

    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox("auto", preload_of(course / "solutions" / CHAPTER, [CHAPTER])))
        runs = [stack.enter_context(sandbox.submission([])) for _ in range(AT_ONCE)]
        for run in runs:
            for number, source in enumerate(cells):
                run.execute(source, str(number), {}, lambda message: None)
        for run in runs:
            run.measure()
        for run in runs:
            run.finish()
        held = [run.usage for run in runs]
    return tuple(sum(usage[key] for usage in held) / AT_ONCE / MEGABYTE for key in ("own", "proportional"))


def _held_cold(cells: Sequence[str], folder: Path) -> tuple[float, float]:
    import psutil
    from jupyter_client.manager import start_new_kernel

    with contextlib.ExitStack() as stack:
        kernels = []
        for _ in range(AT_ONCE):
            manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder), env=_one_thread())
            stack.callback(manager.shutdown_kernel, now=True)
            stack.callback(client.stop_channels)
            for source in cells:
                client.execute_interactive(source, output_hook=lambda message: None)
            kernels.append(psutil.Process(manager.provisioner.pid))
        held = [kernel.memory_full_info() for kernel in kernels]
    return tuple(sum(getattr(each, key) for each in held) / AT_ONCE / MEGABYTE for key in ("uss", "pss"))


def _one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}
