"""Chapter 9: mastery."""
