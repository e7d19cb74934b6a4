"""Chapter 1: the anatomy of a module."""
