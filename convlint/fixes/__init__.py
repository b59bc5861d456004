"""Changing what a user wrote: edits of a text that leave every other byte as it was."""
