"""What is measured on a node, and what it means."""
