"""The Bash server's process."""

from toolroll.cli import main
from toolroll_bash.tool import bash


def run() -> int:
    """The exit code of the process."""
    return main(bash)


if __name__ == "__main__":
    raise SystemExit(run())
