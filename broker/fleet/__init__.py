"""A fleet: several brokers, of which each partition has one, over rows and objects they share."""
