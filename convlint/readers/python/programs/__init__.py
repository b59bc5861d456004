"""Programs that train, what they set, and what they show of their input."""
