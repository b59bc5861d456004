"""Keras archives."""
