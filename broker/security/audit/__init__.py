"""The security audit: who changed what, who was denied what, who failed to log in."""
