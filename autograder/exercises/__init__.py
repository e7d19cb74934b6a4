"""The exercises, one file each, in one folder a chapter."""
