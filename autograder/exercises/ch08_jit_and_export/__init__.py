"""Exercises of chapter 8: what a trace keeps, a model made exportable, and a program that leaves Python."""
