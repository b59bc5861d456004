"""The page of `--output html`: what it shows, worked out here, and how it looks, in the templates beside."""
