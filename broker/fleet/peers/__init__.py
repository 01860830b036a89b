"""Other nodes of a fleet, and what is asked of them."""
