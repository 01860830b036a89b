"""States of share partitions that another node of a fleet remembers."""
