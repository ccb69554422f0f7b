"""Loads of one node, one file each: what the node is put to by itself, and what its answers mean."""
