"""Files that an operator keeps: YAML documents, CSV sheets, lease files."""
