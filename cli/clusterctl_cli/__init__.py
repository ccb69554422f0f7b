"""The face: commands, rendering, and the one place where edges meet steps."""
