"""Reading untrusted text and bytes within bounds, writing YAML, patterns of names and paths, and private folders."""
