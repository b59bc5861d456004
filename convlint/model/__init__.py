"""Convolutions and networks, in the letters of the guide; unknown sizes are None."""
