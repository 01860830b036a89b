"""A fleet and the directories of brokers that stand alone: out of one, into the other."""
