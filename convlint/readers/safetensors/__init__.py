"""safetensors checkpoints."""
