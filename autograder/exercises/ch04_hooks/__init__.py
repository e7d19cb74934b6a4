"""Chapter 4: hooks."""
