"""A process of its own that carries copies to the store, and proves that they have arrived.

Hashing, TLS and what the interpreter does between calls take their CPU there, beside the loop that
serves clients, which would else wait for a thread that holds the interpreter's lock.
"""
