"""PyTorch: modules, whose code runs in a child process, and exported programs, which are parsed."""
