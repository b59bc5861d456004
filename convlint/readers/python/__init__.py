"""Python source, read without importing or running any of it."""
