"""Where the `toolroll-grep` command starts."""

from toolroll.cli import main
from toolroll_grep.tool import grep


def run() -> int:
    """The exit code of the process."""
    return main(grep)


if __name__ == "__main__":
    raise SystemExit(run())
