"""Coverage-guided fuzzing (atheris) of what reads bytes that others wrote: see `targets`."""
