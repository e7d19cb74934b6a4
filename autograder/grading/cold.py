"""Cold kernels: one fresh process and an ordinary Jupyter kernel for each submission, as nbgrader itself would do.

For checking the warm way against (``--verify``), for CUDA, whose contexts cannot be forked, and for systems without a
sandbox, where it has to be asked for by name. Where bubblewrap is there, all of it runs inside.

    python -m autograder.grading.cold      reads an order from standard input, writes the result to standard output
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.grading import confine, enclosure
from autograder.grading.confine import BUBBLEWRAP, NONE
from autograder.grading.limits import Limits
from autograder.grading.sandbox import WITHOUT, SandboxError
from autograder.grading.ticket import Ticket

_EXTRA_SECONDS = 90.0
_LARGEST_RESULT = 400_000_000


def run_cold(
    notebook: NotebookNode, files: Sequence[tuple[str, bytes]], ticket: Ticket, limits: Limits, requested: str
) -> tuple[NotebookNode, str | None, dict[str, Any]]:
    """Execute a notebook in a process of its own; return it, why cells were left out, and nothing on what was used.

    Raises SandboxError where there is no sandbox and none was asked for, and as root without one.
    """
    level = NONE if requested == NONE else BUBBLEWRAP
    if level == NONE and hasattr(os, "geteuid") and os.geteuid() == 0:
        raise SandboxError("Student code is never run as root without a sandbox. Start this as an ordinary user.")
    order = {
        "notebook": notebook,
        "files": [(path, base64.b64encode(data).decode()) for path, data in files],
        "environment": ticket.environment(),
        "limits": limits.as_dict(),
        "level": level,
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        command, environment = _command(level, limits, "cuda" in ticket.devices)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=out, stderr=log, env=environment, start_new_session=True
        )
        try:
            process.communicate(json.dumps(order).encode(), limits.notebook_seconds + _EXTRA_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            said = f"the notebook took longer than {limits.notebook_seconds:.0f} s"
            return notebook, f"Not run: {said}.", {}
        size = out.tell() or out.seek(0, os.SEEK_END)
        out.seek(0)
        try:
            answer = json.loads(out.read()) if size <= _LARGEST_RESULT else {}
            return nbformat.from_dict(answer["notebook"]), answer["unfinished"], {}
        except (ValueError, KeyError, TypeError, RecursionError):
            log.seek(0)
            lines = log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            return notebook, f"Not run: the process that held the kernel ended ({reason}).", {}


def _command(level: str, limits: Limits, cuda: bool) -> tuple[list[str], dict[str, str] | None]:
    if level == NONE:
        names = {key: value for key, value in enclosure.environment().items() if key not in ("PATH", "HOME", "USER")}
        return [sys.executable, "-m", "autograder.grading.cold"], {**os.environ, **names}
    try:
        return enclosure.command(BUBBLEWRAP, limits, module="autograder.grading.cold", cuda=cuda)
    except enclosure.EnclosureError as error:
        raise SandboxError(f"Cold kernels need bubblewrap: {error} {WITHOUT}") from None


def main() -> None:
    """Run one order. Inside a sandbox this process gives up what it does not need first."""
    order = json.load(sys.stdin)
    limits, level = Limits(**order["limits"]), order["level"]
    if os.name == "posix" and os.geteuid() == 0:
        sys.exit("Student code is never run as root.")
    folder = tempfile.mkdtemp(prefix="submission-")
    answer = os.dup(1)
    if level != NONE:
        limits = Limits(**{**limits.as_dict(), "processes": 4 * limits.processes, "open_files": 1024})
        confine.limit_resources(limits)
        confine.drop_capabilities()
        confine.refuse_calls(alone=False, loopback=True)
    os.environ.update(order["environment"], HOME=folder, IPYTHONDIR=f"{folder}/.ipython", TMPDIR=tempfile.gettempdir())
    os.environ.update(JUPYTER_RUNTIME_DIR=f"{folder}/.runtime", JUPYTER_ALLOW_INSECURE_WRITES="1")
    work = Path(folder) / "work"
    work.mkdir()
    for path, text in order["files"]:
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(base64.b64decode(text))
    notebook = nbformat.from_dict(order["notebook"])
    unfinished = _execute(notebook, work, limits)
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump({"notebook": notebook, "unfinished": unfinished}, out)
    shutil.rmtree(folder, ignore_errors=True)


def _execute(notebook: NotebookNode, work: Path, limits: Limits) -> str | None:
    from nbclient.exceptions import DeadKernelError
    from nbgrader.preprocessors import Execute
    from traitlets.config import Config

    config = Config()
    config.Execute.timeout = max(1, round(limits.cell_seconds))
    config.Execute.shutdown_kernel = "immediate"
    execute = Execute(config=config)
    execute.kernel_name = "python3"
    try:
        execute.preprocess(notebook, {"metadata": {"path": str(work)}})
    except (DeadKernelError, RuntimeError, OSError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"Not run: {said}."
    return None


if __name__ == "__main__":
    main()
