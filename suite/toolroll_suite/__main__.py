"""The process of the command `toolroll`."""

import sys

from toolroll_suite.commands import main


def run() -> int:
    """The exit code of the process."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(run())
