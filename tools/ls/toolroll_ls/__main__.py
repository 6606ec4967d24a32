"""Where the `toolroll-ls` command starts."""

from toolroll.cli import main
from toolroll_ls.tool import ls


def run() -> int:
    """The exit code of the process."""
    return main(ls)


if __name__ == "__main__":
    raise SystemExit(run())
