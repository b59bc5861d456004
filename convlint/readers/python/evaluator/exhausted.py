"""What ends an evaluation early."""


class Exhausted(Exception):
    """No steps are left."""
