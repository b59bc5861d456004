"""Attacks on the command line: one generator for each kind, and the contract that all of them are held to."""
