"""How the tests end the servers that they start."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import psutil

_SECONDS = 20


def end(server: subprocess.Popen, *, group: bool = False) -> None:
    """End a server and all that it started, its process group too where it leads one.

    JupyterLab may wait forever for a kernel that was still starting when it was told to end, a hub that failed leaves
    its proxy behind, and one that ends leaves servers in groups of their own.
    """
    below = []
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(server.pid).children(recursive=True)
    server.terminate()
    try:
        server.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if group:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
    for each in below:
        with suppress(psutil.NoSuchProcess):
            each.kill()
