"""The benchmarks: load generators, cells, and a report that sets us beside another broker."""
