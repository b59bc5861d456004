"""What frameworks' own functions and classes do, as far as convolutions are concerned."""
