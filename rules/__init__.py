"""The rules of convlint: one YAML file each."""
