"""Commands on a fleet's rows."""
