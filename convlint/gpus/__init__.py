"""The GPUs: one data file each with a source beside every number, and which libraries support them."""
