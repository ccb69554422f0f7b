"""`clusterctl-node check`: the checks of a node in one file that needs Python 3.10 and nothing else."""
