"""Where the `toolroll-glob` command starts."""

from toolroll.cli import main
from toolroll_glob.tool import glob


def run() -> int:
    """The exit code of the process."""
    return main(glob)


if __name__ == "__main__":
    raise SystemExit(run())
