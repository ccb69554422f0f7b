"""Known kernel messages: NVIDIA's codes, patterns of other drivers, messages that are harmless."""
