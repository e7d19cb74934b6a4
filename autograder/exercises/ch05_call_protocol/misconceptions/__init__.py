"""Wrong implementations that people really write, one file an exercise."""
