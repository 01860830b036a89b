"""More data than the local disk holds, through a broker with a tier: scripts/soak tier."""
