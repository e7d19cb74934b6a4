"""Chapter 2: parameter registration."""
