"""Keras archives (.keras)."""
