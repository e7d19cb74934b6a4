"""What people really write in the exercises of chapter 8, before they know better."""
