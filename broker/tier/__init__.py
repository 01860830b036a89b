"""The tier's other side: copying to the object store, reads from there, sweeps."""
