"""From paths and options to a report: inputs, plan, run, in one process or many."""
