"""The documentation site: pages made from rules, GPUs, schemas and tables, beside those written by hand."""
