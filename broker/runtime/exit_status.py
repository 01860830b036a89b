"""Exit statuses of `horolog`: the reasons of its end, for its supervisor.

2 is also that of a command line that cannot be read.
"""

BAD_SETTINGS = 1
NOT_USABLE = 2  # the data directory, or a port
CORRUPT = 3  # damage that cannot be mended
NOT_DURABLE = 4  # a stop that left something off the disk
WRONG_CLOCK = 5  # a clock that cannot be right
INTERRUPTED = 130
