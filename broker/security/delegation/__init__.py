"""Delegation tokens (KIP-48): a log-in as their owner that ends by itself."""
