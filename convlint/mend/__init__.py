"""From findings to edited sources, verified by reading and checking them again."""
