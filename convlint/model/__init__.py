"""What a convolution and a network are, in the letters of the guide; sizes that nobody knows are None."""
