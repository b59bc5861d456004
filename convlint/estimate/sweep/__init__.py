"""One parameter of a layer varied, and the settings of the figures of the guide."""
