"""The way of our own programs to an object store: its place, credentials, endpoint.

Alone imports the library: `objects`.
"""
