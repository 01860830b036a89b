"""The same topics in the tier of a real Kafka and in ours, and what both say of them."""
