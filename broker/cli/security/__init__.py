"""Commands about users and their rights."""
