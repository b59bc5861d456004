"""What each command of the CLI does, once its options are parsed."""
