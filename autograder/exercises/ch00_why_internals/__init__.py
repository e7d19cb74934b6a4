"""Chapter 0: why internals."""
