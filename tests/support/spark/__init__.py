"""Inputs and outputs of the pipeline: logs, topics, archives, clusters."""
