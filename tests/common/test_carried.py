"""The site's packages, found late by a zipapp that started without them."""

import site
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

import pytest

from toolroll.carried import Site

PATIENCE_S = 30


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A process that finds the site late; what `site.main` is to do is put into the list."""
    asked: list[str] = []
    monkeypatch.setattr(site, "main", lambda: asked.append("main"))
    finder = Site()
    sys.meta_path.append(finder)
    yield asked
    sys.meta_path.remove(finder)


def test_the_site_is_asked_once_and_only_for_what_is_missing(late: list[str]) -> None:
    import_module("json.tool")
    with pytest.raises(ImportError):
        import_module("msvcrt")  # as `subprocess` does
    with pytest.raises(ImportError):
        import_module("json.nothing")
    assert late == []
    for _ in range(2):
        with pytest.raises(ImportError):
            import_module("nothing_of_that_name")
    assert late == ["main"]


def test_a_package_of_the_site_is_imported(
    late: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "of_the_site.py").write_text("found = True\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(site, "main", lambda: sys.path.append(str(tmp_path)))
    assert import_module("of_the_site").found
    assert late == []


def test_other_threads_import_while_the_site_is_being_set_up(
    late: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "of_another_thread.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    begun, over = Event(), Event()

    def main() -> None:
        begun.set()
        over.wait(PATIENCE_S)

    monkeypatch.setattr(site, "main", main)

    def want() -> None:
        with pytest.raises(ImportError):
            import_module("nothing_of_that_name")

    first = Thread(target=want, daemon=True)
    second = Thread(target=import_module, args=["of_another_thread"], daemon=True)
    first.start()
    assert begun.wait(PATIENCE_S)
    second.start()
    second.join(PATIENCE_S / 2)
    stuck = second.is_alive()
    over.set()
    first.join(PATIENCE_S)
    assert not stuck
    assert late == []
