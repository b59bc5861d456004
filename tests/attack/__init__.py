"""Attacks on the command line: a generator for each kind of input, and the contract that every run must keep."""
