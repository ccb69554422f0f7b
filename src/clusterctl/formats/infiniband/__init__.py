"""Output of InfiniBand tools: fabrics, forwarding tables, port states and counters."""
