"""The Replace server's process."""

from toolroll.cli import main
from toolroll_replace.tool import replace


def run() -> int:
    """The exit code of the process."""
    return main(replace)


if __name__ == "__main__":
    raise SystemExit(run())
