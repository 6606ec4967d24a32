"""Compare the searching tools with ripgrep on real trees: `parity.py [TREE ...]`, exit 1 for a difference.

Runs `parity_<tool>.py` for each tool that has one.
"""

import subprocess
import sys
from pathlib import Path


def main(trees: list[str]) -> int:
    """The exit code: that of the worst."""
    scripts = sorted(Path(__file__).parent.glob("parity_*.py"))
    return max(
        subprocess.run([sys.executable, script, *trees], check=False).returncode
        for script in scripts
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
