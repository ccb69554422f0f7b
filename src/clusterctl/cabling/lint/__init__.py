"""Rules for a wiring plan by itself."""
