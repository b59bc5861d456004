"""Reading where a fault, a hang or foreign code can do no harm: in child processes that answer with data."""
