"""Reading text and bytes that nobody vouches for, and writing YAML: bounds, positions, patterns, private folders."""
