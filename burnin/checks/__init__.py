"""One file per check: probes in, findings out."""
