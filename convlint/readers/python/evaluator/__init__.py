"""A partial evaluator of Python: what it cannot know is unknown, and what it knows, it knows from where."""
