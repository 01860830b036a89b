"""A real Apache Kafka."""
