"""The way of our own programs into a broker: settings of clients, keys, certificates, log-ins.

The commands of the broker and the pipeline use the same; neither knows the other.
"""
