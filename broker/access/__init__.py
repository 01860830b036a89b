"""The way of our own programs to others: into a broker (keys, certificates, log-ins), to a store.

The commands of the broker and the pipeline use the same; neither knows the other.
"""
