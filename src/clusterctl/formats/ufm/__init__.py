"""NVIDIA UFM: the answers of its REST API, and its event log."""
