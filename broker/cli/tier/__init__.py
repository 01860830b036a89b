"""Commands on the tier's object store."""
