"""File systems that fail, lose their power, or forbid writing."""
