"""The YAML (or JSON) spec: reading and writing it."""
