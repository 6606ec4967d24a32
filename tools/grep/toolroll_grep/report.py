"""Matches fitted to a number of lines and of characters, and printed; knows no search.

When it is too much, context goes first, then lines of the files that have many, then all lines of
the oldest files: those are named with their counts.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Json = Any

MORE = 40  # characters that "and 123 more files" may take


class Line:
    """A line that can be shown: a match, or context of one."""

    __slots__ = ("column", "is_match", "number", "remark", "text")

    def __init__(self, number: int, column: int, text: str, is_match: bool, remark: str) -> None:
        self.number = number
        self.column = column
        self.text = text
        self.is_match = is_match
        self.remark = remark

    def __str__(self) -> str:
        tail = f" {self.remark}" if self.remark else ""
        return f"{self.number}{':' if self.is_match else '-'} {self.text}{tail}"


class File:
    """A file with matches: `count` of them, of which `quota` lines are to be shown.

    `path` is from the start of the search, `shown` as it is printed.
    """

    def __init__(self, path: str, shown: str, count: int) -> None:
        self.path = path
        self.shown = shown
        self.count = count
        self.quota = 0
        self.head = ""
        self.lines: list[Line] = []

    def fill(self, etag: str, encoding: str, nul: int, lines: "Sequence[tuple[Json, ...]]") -> None:
        """Take in the lines, and what is to be known of the file."""
        self.lines = [Line(*line) for line in lines]
        notes = [f"etag {etag}"]
        if encoding:
            notes.append(encoding)
        if nul >= 0:
            notes.append(f"binary from byte {nul}, not searched there")
        self.head = "  ".join([self.shown, *notes])

    def visible(self, most: int, context: bool) -> "list[Line]":
        """The first `most` matching lines, and what stands around them."""
        shown: list[Line] = []
        matches = 0
        waiting: list[Line] = []
        for line in self.lines:
            if not line.is_match:
                waiting.append(line)
                continue
            matches += 1
            if matches > most:
                last = shown[-1].number if shown else 0
                shown += [one for one in waiting if context and one.number == last + 1]
                return shown
            shown += [*(waiting if context else ()), line]
            waiting = []
        return shown + (waiting if context else [])

    def block(self, most: int, context: bool) -> str:
        """The file's part of the answer."""
        lines = self.visible(most, context)
        matches = sum(line.is_match for line in lines)
        some = f"  {matches} of {self.count} lines" if matches < self.count else ""
        return "\n".join([self.head + some, *(_spaced(lines) if context else map(str, lines))])


def _spaced(lines: "list[Line]") -> "Iterator[str]":
    """The lines, with `--` where some are left out between them."""
    last = 0
    for line in lines:
        if last and line.number > last + 1:
            yield "--"
        last = line.number
        yield str(line)


def shared(counts: "Sequence[int]", limit: int) -> "list[int]":
    """How many lines each file may show: small ones all, the others to equal parts, in all `limit`.

    What does not divide goes to the first ones.
    """
    quotas = [0] * len(counts)
    left = limit
    open_ = list(range(len(counts)))
    while left and open_:
        part = left // len(open_)
        if not part:
            for index in open_[:left]:
                quotas[index] += 1
            break
        for index in open_:
            more = min(part, counts[index] - quotas[index])
            quotas[index] += more
            left -= more
        open_ = [index for index in open_ if quotas[index] < counts[index]]
    return quotas


class Report:
    """The files of an answer, newest first, fitted to `limit` lines or, without lines, files."""

    def __init__(self, files: "list[File]", mode: str, limit: int, context: bool) -> None:
        self.files = files
        self._context = context
        self._mode = mode
        self._limit = limit
        self.total = sum(file.count for file in files)
        self._visible: list[tuple[File, list[Line]]] = []
        self._named = 0
        if mode == "content":
            quotas = shared([file.count for file in files], limit)
            for file, quota in zip(files, quotas, strict=True):
                file.quota = quota

    def text(self, most: int) -> str:
        """The answer in about `most` characters."""
        if self._mode != "content":
            return "\n".join(self._names(self.files[: self._limit], most))
        detailed = [file for file in self.files if file.lines]
        deepest = max((file.quota for file in detailed), default=1)
        for context, quota in [
            (self._context, deepest),
            *((False, deep) for deep in _fewer(deepest)),
        ]:
            text = self._content(detailed, quota, context, most)
            if text is not None:
                return text
        while detailed:
            detailed = detailed[: len(detailed) // 2]
            text = self._content(detailed, 1, False, most, strict=False)
            if text is not None:
                return text
        return ""

    def _content(
        self, detailed: "list[File]", quota: int, context: bool, most: int, strict: bool = True
    ) -> str | None:
        """The text with up to `quota` lines a file, None when it is too long.

        Of the files without lines as many are named as there is room for; `strict`: all.
        """
        text = "\n\n".join(file.block(quota, context) for file in detailed)
        rest = (
            self.files[len(detailed) :]
            if detailed == self.files[: len(detailed)]
            else [file for file in self.files if file not in detailed]
        )
        room = most - len(text)
        if room < (MORE if rest else 0):
            return None
        self._visible = [(file, file.visible(quota, context)) for file in detailed]
        if not rest:
            return text
        needed = sum(len(file.shown) + len(str(file.count)) + 3 for file in rest)
        if needed > room and strict and quota > 1 and len(rest) <= self._limit:
            return None
        names = "\n".join(self._names(rest, room))
        return f"{text}\n\n{names}" if text else names

    def _names(self, files: "list[File]", most: int) -> "Iterator[str]":
        """A line for each file, as long as there is room."""
        self._named = 0
        for file in files:
            line = file.shown if self._mode == "files" else f"{file.shown}: {file.count}"
            most -= len(line) + 1
            if most < MORE and self._named < len(files) - 1:
                break
            yield line
            self._named += 1

    @property
    def facts(self) -> "Iterator[str]":
        """How much there is, and how much of it is shown; to be asked after `text`."""
        count = len(self.files)
        files = f"{count} file" + ("" if count == 1 else "s")
        lines = f"{self.total} line" + ("" if self.total == 1 else "s")
        if self._mode == "content":
            shown = sum(line.is_match for _, visible in self._visible for line in visible)
            if shown < self.total:
                yield f"truncated: {shown} of {lines} in {files}; narrow path or include, or raise limit"
            else:
                yield f"{lines} in {files}"
            unnamed = count - len(self._visible) - self._named
            if unnamed:
                yield f"{unnamed} more files not named"
        elif self._named < count:
            yield f"truncated: {self._named} of {files}; narrow path or include, or raise limit"
        else:
            yield files if self._mode == "files" else f"{self.total} in {files}"

    @property
    def data(self) -> "dict[str, Json]":
        """The structured form of what is shown; to be asked after `text`."""
        results: list[Json] = []
        if self._mode == "content":
            for file, visible in self._visible:
                results += [_result(file, line) for line in visible]
        else:
            counted = self._mode == "count"
            for file in self.files[: self._named]:
                results.append({"path": file.shown, **({"count": file.count} if counted else {})})
        data = {"results": results, "files": len(self.files), "total": self.total}
        if any(fact.startswith("truncated") for fact in self.facts):
            data["truncated"] = True
        return data


def _fewer(deepest: int) -> "Iterator[int]":
    """Ever fewer lines a file, down to one."""
    while deepest > 1:
        yield deepest
        deepest = deepest * 2 // 3
    yield 1


def _result(file: File, line: Line) -> "dict[str, Json]":
    kind = "match" if line.is_match else "context"
    place = {"column": line.column} if line.is_match else {}
    return {"path": file.shown, "line": line.number, **place, "text": line.text, "kind": kind}
