"""Security: who a client is, and what its connection may do."""
