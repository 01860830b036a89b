"""Clients, tools and requests that ask something of a broker."""
