"""Chapter 3: buffers and state."""
