"""The fabric as a picture: devices by tier and rack, ports, counters over time, pairs. Pure: draws nothing."""
