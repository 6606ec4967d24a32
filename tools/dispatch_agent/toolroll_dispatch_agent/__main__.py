"""Where the `toolroll-dispatch-agent` command starts."""

from toolroll.cli import main
from toolroll_dispatch_agent.tool import dispatch_agent


def run() -> int:
    """The exit code of the process."""
    return main(dispatch_agent)


if __name__ == "__main__":
    raise SystemExit(run())
