"""The hunt for the bad node, path or rail among nodes that are measured together (docs/explanation/hunting.md)."""
