"""What a file's stat result says, in the words the tools share; opens nothing."""

import os
from time import gmtime, strftime


def state(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What differs after any change, and in every other file."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def iso_time(time_ns: int) -> str:
    """A time as ISO 8601 in UTC; empty for one beyond the calendar (file systems take any number)."""
    try:
        return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time_ns // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return ""
