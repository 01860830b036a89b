"""Object stores for tests: in memory, real ones on this machine, and one that fails by a script."""
