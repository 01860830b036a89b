"""SASL: the exchange by which a client proves who it is, before any other request is taken."""
