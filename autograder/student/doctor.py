"""The environment doctor: in one screen, what works on this machine and how to mend what does not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from autograder.lesson import progress

TORCH = "2.13"
OLDEST_PYTHON = (3, 11)
NEEDED = ("jupyterlab", "ipykernel", "ipywidgets", "matplotlib", "nbgrader")


class Finding(NamedTuple):
    """One line of the screen: ``good`` True works, False must be mended, None is optional and not there."""

    good: bool | None
    what: str
    remedy: str = ""


def findings(root: Path) -> Iterator[Finding]:
    """Yield what was found, the most basic first. Nothing is changed, and a part that breaks says so and no more."""
    looks: tuple[Callable[[Path], Iterator[Finding]], ...] = (
        _python, _torch, _device, _packages, _extensions, _kernel, _files, _optional,
    )  # fmt: skip
    for look in looks:
        try:
            yield from look(root)
        except Exception as error:
            yield Finding(False, f"{look.__name__.strip('_')}: {type(error).__name__}: {error}", "run: make clean lab")


def _python(root: Path) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= OLDEST_PYTHON
    yield Finding(good, f"Python {version} in {sys.prefix}", "make clean lab PYTHON=/path/to/python3.11 (or newer)")


def torch_problem() -> str | None:
    """Return one sentence when torch is missing or is not the version that the chapters quote, or None."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return f"torch is not installed in {sys.prefix}. Run `make lab`, or choose the kernel of the course's .venv."
    if not version.startswith(f"{TORCH}."):
        return f"This course explains torch {TORCH}, and here is torch {version}. Run `make lab` for the right one."
    return None


def _torch(root: Path) -> Iterator[Finding]:
    problem = torch_problem()
    if problem:
        yield Finding(False, problem, "run: make lab")
        return
    import torch

    right = torch.equal(torch.ones(2, 2) @ torch.ones(2, 2), torch.full((2, 2), 2.0))
    yield Finding(right, f"torch {torch.__version__} computes on {torch.get_num_threads()} threads", "make clean lab")


def _device(root: Path) -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        yield Finding(None, "no CUDA device: checks run on the CPU, which is all the course needs")
        return
    right = bool((torch.ones(2, device="cuda") + 1).sum().item() == 4)
    name = torch.cuda.get_device_name()
    yield Finding(right, f"{name}: checks run there too", "update the driver, or go without: CUDA_VISIBLE_DEVICES=")


def _packages(root: Path) -> Iterator[Finding]:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding(False, f"not installed: {', '.join(missing)}", "run: make lab")
    else:
        told = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in NEEDED)
        yield Finding(True, told)


def _extensions(root: Path) -> Iterator[Finding]:
    folder = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
    for name, what in {
        "@jupyter-widgets/jupyterlab-manager": "widgets in JupyterLab",
        "@jupyter/nbgrader": "nbgrader's Validate button",
    }.items():
        there = (folder / name).is_dir()
        yield Finding(there, what if there else f"{what}: the extension is not in {folder}", "run: make clean lab")


def _kernel(root: Path) -> Iterator[Finding]:
    from jupyter_client.kernelspec import KernelSpecManager

    command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    own = Path(command).name.startswith("python") and (
        not os.path.isabs(command) or Path(command).parent == Path(sys.executable).parent
    )
    said = "the kernel Python 3 is this Python" if own else f"the kernel Python 3 is another Python: {command}"
    yield Finding(own, said, "start JupyterLab with `make lab`")


def _files(root: Path) -> Iterator[Finding]:
    notebooks = root / "notebooks"
    try:
        with tempfile.TemporaryFile(dir=notebooks):
            yield Finding(True, f"{notebooks} can be written in")
    except OSError as error:
        yield Finding(False, f"{notebooks}: {error.strerror}", "copy the course to a folder of your own")
    free = shutil.disk_usage(root).free / 2**30
    yield Finding(free > 0.2, f"{free:.1f} GB of disk are free", "make room: notebooks are saved whole")
    file = progress.location()
    kept = progress.record("doctor", "doctor", {})
    yield Finding(kept or None, f"progress is kept in {file}" if kept else progress.NOT_KEPT)


def _optional(root: Path) -> Iterator[Finding]:
    if shutil.which("bwrap") is None:
        yield Finding(None, "bubblewrap is not here: only instructors need it, to grade")
    if not Path("/usr/bin/chromium").exists():
        yield Finding(None, "Chromium is not here: only the course's own tests need it")


def screen(root: Path) -> tuple[str, bool]:
    """Return the doctor's screen as text, and whether everything that is needed works."""
    lines, well = [], True
    for good, what, remedy in findings(root):
        lines.append(f"{'–' if good is None else '✓' if good else '✗'} {what}")
        if good is False:
            well = False
            lines.append(f"    {remedy}")
    lines.append(
        "Everything that the course needs works." if well else "Mend what is marked ✗ and run `make doctor` again."
    )
    return "\n".join(lines), well
