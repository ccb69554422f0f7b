"""The hunt for the bad host, path or rail among hosts that can only be measured together (docs/hunting.md)."""
