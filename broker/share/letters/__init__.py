"""Dead letters of share groups (KIP-1191): records that are given up, kept in another topic."""
