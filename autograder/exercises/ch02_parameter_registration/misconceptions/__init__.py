"""Wrong answers to the exercises of chapter 2, one file an exercise."""
