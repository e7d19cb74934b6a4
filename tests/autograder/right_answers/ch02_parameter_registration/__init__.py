"""Right answers to the exercises of chapter 2, each written in its own way."""
