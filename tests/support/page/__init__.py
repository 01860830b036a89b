"""Pages in a browser, and what they show."""
