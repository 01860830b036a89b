"""The tier's other side: the object store itself. Alone imports obstore: `objects`."""
