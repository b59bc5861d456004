"""What is done with one input: it is read, checked, mended where that is asked for, and checked again."""
