"""PyTorch: modules, which run the user's code in a child process, and exported programs, which are parsed."""
