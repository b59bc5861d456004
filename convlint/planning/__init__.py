"""The plan for a whole network: which of the changes that rules allow make it fastest, and in which order."""
