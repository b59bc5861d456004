"""Where output goes: standard streams behind one gate, and files that are replaced as a whole or not at all."""
