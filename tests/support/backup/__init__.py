"""Back-ups of simulated directories, for tests."""
