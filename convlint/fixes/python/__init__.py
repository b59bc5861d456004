"""Python source that constructs layers: the calls, their arguments, where values come from, and rewriting literals."""
