"""Link health from two readings of counters and sensors."""
