"""State of share groups' records (KIP-932): `__share_group_state` and its coordinator."""
