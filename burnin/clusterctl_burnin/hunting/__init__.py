"""The hunt for the bad node, path or rail among nodes that can only be measured together (docs/hunting.md)."""
