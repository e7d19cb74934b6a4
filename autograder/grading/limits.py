"""What one submission may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MEGABYTE = 2**20
LARGEST_NOTEBOOK = 100 * MEGABYTE
# Lists, dictionaries and what is between them: pictures have few, and a file of nothing else would fill the memory.
MOST_VALUES = 3_000_000


@dataclass(frozen=True)
class Limits:
    """Seconds, bytes and counts for one submission; each is enforced from outside or by the kernel.

    ``memory`` bounds what a process may allocate; ``disk`` all that a submission may write, one file at most
    ``file_size``, ``files`` the bytes of the files it brings; ``output`` and ``messages`` what one cell may show.
    """

    cell_seconds: float = 60.0
    notebook_seconds: float = 600.0
    memory: int = 2048 * MEGABYTE
    disk: int = 256 * MEGABYTE
    files: int = 64 * MEGABYTE
    file_count: int = 1000
    file_size: int = 128 * MEGABYTE
    processes: int = 64
    open_files: int = 256
    output: int = 16 * MEGABYTE
    messages: int = 5_000

    def as_dict(self) -> dict[str, Any]:
        """Return the limits as plain data, as they cross to the worker and enter the key of a stored result."""
        return asdict(self)
