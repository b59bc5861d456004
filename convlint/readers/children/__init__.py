"""Child processes for what may crash, hang or run foreign code; they answer with data."""
