"""What rules can ask of a layer, its target and its network: every quantity once, with all that is known about it."""
