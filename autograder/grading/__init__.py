"""What instructors use: nbgrader's steps, with our execution and scoring in their places."""
