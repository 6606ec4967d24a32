"""The view server's process."""

import sys

from toolroll.cli import main
from toolroll_view.tool import view


def run() -> int:
    """The exit code of `toolroll-view`."""
    return main(view)


if __name__ == "__main__":
    sys.exit(run())
