"""Chapter 5: the call protocol."""
