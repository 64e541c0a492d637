"""The exit statuses of our commands, and of VLMEvalKit's runner where it ran our datasets."""

SOME_FAILED = 1
"""Something failed: run again to go on."""

REFUSED = 2
"""Nothing was run."""

NO_MORE = 3
"""The spending limit is reached, or the disk is full."""

LATER = 4
"""Batches are still under way."""

INTERRUPTED = 130
"""Somebody stopped it."""
