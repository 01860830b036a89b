"""Settings of Kafka that steer nothing here: those that are refused, ignored, or only kept."""
