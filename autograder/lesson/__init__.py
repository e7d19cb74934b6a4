"""What a reader meets between the exercises: predictions, quizzes, recall items and their memory."""

from __future__ import annotations

from autograder.lesson.show import predict, quiz, recall

__all__ = ["predict", "quiz", "recall"]
