"""What an instructor does with a class beside grading it."""
