"""From paths and options to a report: plans, inputs, one process or many."""
