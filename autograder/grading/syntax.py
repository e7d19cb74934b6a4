"""Code cells as syntax trees. They are parsed, never run."""

from __future__ import annotations

import ast
import functools
import warnings


@functools.lru_cache(maxsize=4096)
def parsed(source: str) -> ast.Module | None:
    """Return a code cell's syntax tree, magics and shell lines replaced as IPython would, or None.

    Most cells are the same in every submission; the tree is shared and must not be changed.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
