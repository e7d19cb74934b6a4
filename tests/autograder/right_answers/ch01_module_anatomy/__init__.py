"""Right answers of chapter 1."""
