"""What a hostile or broken submission gets: the right score, and nothing lost. SECURITY.md names these tests."""
