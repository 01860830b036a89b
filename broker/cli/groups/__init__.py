"""Commands on groups: consumer groups, share groups, streams groups."""
