"""Where Halftone's partitions differ from torch's on the same joint graph, and why."""

# (case, partitioner, part) -> ({operator: ours minus Python's}, reason)
KNOWN = {}

# Cases in which no value can be computed again from less.
NOTHING_TO_RECOMPUTE = set()
