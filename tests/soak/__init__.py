"""A long run under load, and the verdict on it: scripts/soak."""
