"""Share groups (KIP-932): records that several members read, each acknowledged by itself."""
