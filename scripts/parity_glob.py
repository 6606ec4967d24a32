"""GlobTool finds the same files as `rg --files -g`: a table of patterns on real trees.

    python scripts/parity_glob.py [TREE ...]     (default: Python's own library and this checkout)

ripgrep's -g differs on purpose in three things, which are made equal here and listed in
tools/glob/README.md: without a slash it means any depth (so `/*.py` is asked for `*.py`), it lists matches
that are hidden or ignored (so only what `rg --files` lists without -g counts), and it knows no groups like
`@(a|b)` (so several -g are asked).
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PATTERNS: dict[str, tuple[str, ...]] = {
    "**/*.py": ("*.py",),
    "*.py": ("/*.py",),
    "*": ("/*",),
    "**": ("**",),
    "**/*": ("*",),
    "*/*": ("/*/*",),
    "*/*/*.py": ("/*/*/*.py",),
    "**/__init__.py": ("__init__.py",),
    "**/test_*.py": ("test_*.py",),
    "**/*.{py,h,c,toml}": ("*.{py,h,c,toml}",),
    "{test,tests,json}/**/*.py": ("/{test,tests,json}/**/*.py",),
    "**/test*/**/*.py": ("**/test*/**/*.py",),
    "**/[a-c]*.py": ("[a-c]*.py",),
    "**/[!a-z_]*": ("[!a-z_]*",),
    "**/????.py": ("????.py",),
    "**/*_*_*.py": ("*_*_*.py",),
    "**/{a,b}*/**": ("**/{a,b}*/**",),
    "**/@(README|LICENSE)*": ("README*", "LICENSE*"),
    "**/*.+([ch])": ("*.c", "*.h", "*.cc", "*.hh"),
    "json/**": ("/json/**",),
    "**/no/such/file": ("**/no/such/file",),
}


def main(trees: list[str]) -> int:
    """The exit code: 1 when any answer differs."""
    chosen = [Path(tree) for tree in trees] or [Path(sysconfig.get_path("stdlib")), ROOT]
    return 1 if sum([differing(tree.resolve()) for tree in chosen]) else 0


def differing(tree: Path) -> int:
    """How many patterns find other files than ripgrep in one tree; each is printed."""
    everything = rg(tree)
    print(f"{tree}: {len(everything)} files")
    bad = 0
    for pattern, globs in PATTERNS.items():
        ours, theirs = found(tree, pattern), rg(tree, *globs) & everything
        bad += ours != theirs
        print(f"  {'same' if ours == theirs else 'DIFFERS':8}{len(ours):8}  {pattern}")
        for path in sorted(ours ^ theirs)[:5]:
            print(f"      only {'ours' if path in ours else 'rg'}: {path!r}")
    return bad


def rg(tree: Path, *globs: str) -> set[str]:
    """The files that ripgrep lists."""
    words = [word for glob in globs for word in ("-g", glob)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["rg", "--files", "--null", *words],
        cwd=tree,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        check=False,  # 1 when nothing matches
    )
    return {path.decode("utf-8", "surrogateescape") for path in done.stdout.split(b"\0") if path}


def found(tree: Path, pattern: str) -> set[str]:
    """The files that GlobTool finds."""
    from toolroll.call import Call
    from toolroll.guard import Guard
    from toolroll.paths import Roots
    from toolroll_glob.find import Search

    call = Call(Roots([str(tree)]), Guard({}))
    with call.roots.open_directory(".") as opened:
        return {path for _, path, _, _ in Search(opened, pattern, (), call).run(10_000_000)}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
