"""Programs that run on a node. Standard library only, Python 3.9."""
