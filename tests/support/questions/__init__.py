"""Questions asked of a real Kafka and of ours alike, with Kafka's recorded answers."""
