"""One input checked: read, resolved, judged."""
