"""The command line: one module per command. The only place that prints or exits."""
