"""One straight pipe from networks, rules and targets to findings."""
