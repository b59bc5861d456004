"""Timing a network's convolutions on the user's own device, and holding predictions and advice against that."""
