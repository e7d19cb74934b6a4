"""Chapter 6: containers, and the activations that go into them."""
