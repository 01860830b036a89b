"""Redrive: dead letters of a share group go back to the topics of their origin."""
