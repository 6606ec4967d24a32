"""The Edit server's process."""

from toolroll.cli import main
from toolroll_edit.tool import edit


def run() -> int:
    """The exit code of the process."""
    return main(edit)


if __name__ == "__main__":
    raise SystemExit(run())
