"""What the project's files say: settings, where they stand, and the patterns in them."""
