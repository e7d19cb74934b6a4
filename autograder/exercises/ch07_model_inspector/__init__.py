"""Chapter 7: the model inspector."""
