"""Archives and JSON that nobody vouches for: bounded before the work, every fault with its place."""
