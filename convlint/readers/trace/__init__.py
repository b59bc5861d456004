"""Traces of PyTorch's profiler and profiles of trtexec: the convolutions that ran, and what they took."""
