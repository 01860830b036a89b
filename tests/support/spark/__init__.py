"""What the pipeline reads and writes: logs, topics, archives, clusters."""
