"""The chat on a real pseudo-terminal and questions in a pipe, with a scripted model on loopback."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools import model_server as play
from tests.tools.model_server import ModelServer
from toolroll.cli import UsageError
from toolroll_dispatch_agent.chat import blocks
from toolroll_dispatch_agent.conversation import load, newest, save

for _library in ("openai", "prompt_toolkit", "rich"):
    pytest.importorskip(_library, reason="the extra toolroll[chat] is not installed")

Json = Any
WAIT_S = 30
AGENT = [sys.executable, "-m", "toolroll_dispatch_agent"]
SEARCH = play.call(("GrepTool", {"pattern": "def find"}))
PROMPT = "\x1b[?2004h"
"""What a terminal is told when a line is about to be read: pasted text is to be marked."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("import os\n\n\ndef find(name):\n    return name\n")
    return folder


def environment(server: "ModelServer | None", folder: Path) -> dict[str, str]:
    """Nothing of whoever runs the tests but PATH."""
    found = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "NO_PROXY": "127.0.0.1"}
    found |= {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "LANG": "C.UTF-8"}
    if server is not None:
        found |= {"TOOLROLL_AGENT_BASE_URL": server.address, "TOOLROLL_AGENT_MODEL": "m"}
    return found


class Terminal:
    """A chat on a pseudo-terminal; every wait is bounded."""

    def __init__(self, server: ModelServer, folder: Path, *options: str) -> None:
        self.process = pexpect.spawn(
            AGENT[0],
            [*AGENT[1:], "--interactive", *options],
            cwd=str(folder),
            env=environment(server, folder),
            dimensions=(40, 100),
            timeout=WAIT_S,
            encoding="utf-8",
        )
        self.see("for help")
        self.see(PROMPT)

    def see(self, text: str) -> str:
        """Wait for a text and give what came before it."""
        self.process.expect_exact(text)
        return str(self.process.before)

    def type(self, text: str) -> None:
        """Press keys."""
        self.process.send(text)

    def ask(self, text: str) -> str:
        """Send a question, and give what is shown until the line of facts."""
        self.type(f"{text}\r")
        shown = self.see(" turn")
        self.see(PROMPT)
        return shown

    def leave(self) -> int:
        """Press Ctrl-D and give the exit code."""
        self.process.sendeof()
        return self.end()

    def end(self) -> int:
        self.process.expect(pexpect.EOF)
        self.process.wait()
        assert self.process.exitstatus is not None
        return int(self.process.exitstatus)


@pytest.fixture
def chat(project: Path) -> Iterator[Callable[..., Terminal]]:
    """`chat(server, *options)`: a running chat."""
    running: list[Terminal] = []

    def start(server: ModelServer, *options: str) -> Terminal:
        running.append(Terminal(server, project, *options))
        return running[-1]

    yield start
    for one in running:
        one.process.close(force=True)


Chat = Callable[..., Terminal]
Model = Callable[..., ModelServer]


def said(request: play.Request) -> list[tuple[str, str]]:
    """Who said what, without the instructions."""
    return [(one["role"], one["content"]) for one in request.messages[1:]]


# -- on a terminal -------------------------------------------------------------------------------------


def test_a_question_is_answered_with_the_calls_shown(chat: Chat, model: Model) -> None:
    terminal = chat(model(SEARCH, play.say("It is in **app.py:4**.")))
    shown = terminal.ask("where is find?")
    assert '• GrepTool {"pattern": "def find"}' in shown
    assert "app.py:4" in shown
    assert "**" not in shown
    assert terminal.leave() == 0


def test_the_next_question_knows_the_last_answer(chat: Chat, model: Model) -> None:
    server = model(play.say("Blue."), play.say("Red."))
    terminal = chat(server)
    terminal.ask("first?")
    terminal.ask("second?")
    assert said(server.requests[1]) == [
        ("user", "first?"),
        ("assistant", "Blue."),
        ("user", "second?"),
    ]
    terminal.type("/exit\r")
    assert terminal.end() == 0


@pytest.mark.parametrize("keys", ["one\\\rtwo\r", "one\x1b\rtwo\r"])
def test_a_question_may_have_several_lines(chat: Chat, model: Model, keys: str) -> None:
    server = model(play.say("Yes."))
    terminal = chat(server)
    terminal.type(keys)
    terminal.see(" turn")
    assert said(server.requests[0]) == [("user", "one\ntwo")]


def test_ctrl_c_ends_a_running_answer_and_keeps_the_chat(chat: Chat, model: Model) -> None:
    server = model(play.say("Blue."), play.wait, play.say("Red."))
    terminal = chat(server)
    terminal.ask("first?")
    terminal.type("second?\r")
    assert server.waiting.wait(WAIT_S)
    terminal.process.sendintr()
    terminal.see("Stopped")
    assert server.hung_up.wait(WAIT_S)
    terminal.see(PROMPT)
    terminal.ask("third?")
    assert [text for _, text in said(server.requests[-1])] == ["first?", "Blue.", "third?"]
    assert terminal.leave() == 0


def test_ctrl_c_at_the_prompt_forgets_what_was_typed(chat: Chat, model: Model) -> None:
    server = model(play.say("Yes."))
    terminal = chat(server)
    terminal.type("abandoned")
    terminal.see("abandoned")
    terminal.process.sendintr()
    terminal.see(PROMPT)
    terminal.ask("kept")
    assert said(server.requests[0]) == [("user", "kept")]


def test_a_model_that_fails_is_told_and_the_question_forgotten(chat: Chat, model: Model) -> None:
    server = model(play.refuse(400, "no such model"), play.say("Yes."))
    terminal = chat(server)
    assert "no such model" in terminal.ask("first?")
    terminal.ask("second?")
    assert said(server.requests[1]) == [("user", "second?")]


def test_the_commands_do_what_help_says(chat: Chat, model: Model) -> None:
    server = model(play.say("Blue."), play.say("Red."))
    terminal = chat(server)
    terminal.type("/help\r")
    terminal.see("forget what was said")
    terminal.type("/tools\r")
    assert "View  Read a file" in terminal.see("LS  ")
    terminal.type("/nonsense\r")
    terminal.see("There is no command /nonsense")
    terminal.ask("first?")
    terminal.type("/clear\r")
    terminal.see("All is forgotten")
    terminal.ask("second?")
    assert said(server.requests[1]) == [("user", "second?")]


def test_verbose_shows_what_the_tools_answer(chat: Chat, model: Model) -> None:
    terminal = chat(model(SEARCH, play.say("There.")), "--verbose")
    assert "4: def find(name):" in terminal.ask("where?")


def test_what_a_model_says_does_not_act_on_the_terminal(chat: Chat, model: Model) -> None:
    shown = chat(model(play.say("Look: \x1b]0;owned\x07 and \x1b[2J."))).ask("say something")
    assert "\x1b]0;owned" not in shown
    assert "\x1b[2J" not in shown
    assert "owned" in shown


def test_a_history_is_kept_for_its_owner_and_gone_on_with(
    chat: Chat, model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "talk.json"
    server = model(SEARCH, play.say("Blue."), play.say("Red."))
    terminal = chat(server, "--history", str(path))
    terminal.ask("first?")
    assert terminal.leave() == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one["role"] for one in json.loads(path.read_text())["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]
    again = chat(server, "--history", str(path))
    again.type("\x1b[A")  # the arrow up brings the first question back
    again.see("first?")
    again.type(" Again.\r")
    again.see(" turn")
    texts = [text for role, text in said(server.requests[2]) if role != "tool"]
    assert texts == ["first?", None, "Blue.", "first? Again."]


def test_a_terminated_chat_ends_with_its_servers(chat: Chat, model: Model) -> None:
    terminal = chat(model(SEARCH, play.say("There.")))
    terminal.ask("where?")
    terminal.process.kill(signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM


# -- in a pipe -----------------------------------------------------------------------------------------


def ask(
    server: "ModelServer | None", folder: Path, *options: str, question: str = "where is find?"
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*AGENT, *options],
        input=question,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
        cwd=folder,
        env=environment(server, folder),
    )


def test_a_question_in_a_pipe_is_answered_in_plain_text(model: Model, project: Path) -> None:
    done = ask(model(SEARCH, play.say("It is in **app.py:4**.")), project, "--ask")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is in **app.py:4**.\n", "")


def test_a_question_may_stand_on_the_command_line(model: Model, project: Path) -> None:
    server = model(play.say("Yes."))
    assert ask(server, project, "--ask", "is", "it so?", question="").stdout == "Yes.\n"
    assert said(server.requests[0]) == [("user", "is it so?")]


def test_a_question_without_an_answer_ends_with_1(model: Model, project: Path) -> None:
    done = ask(model(play.refuse(401, "bad key")), project, "--ask")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad key" in done.stderr


@pytest.mark.parametrize(
    ("options", "question", "why"),
    [
        (("--ask",), " \n", "there is no question"),
        (("--interactive",), "", "needs a terminal"),
        (("--ask", "--history", "/nonexistent/talk.json"), "a?", "/nonexistent/talk.json"),
        (("--ask", "--temperature", "3"), "a?", "from 0 to 2"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    model: Model, project: Path, options: tuple[str, ...], question: str, why: str
) -> None:
    done = ask(model(play.say("Yes.")), project, *options, question=question)
    assert done.returncode == 2
    assert why in done.stderr


def test_without_a_model_it_says_how_to_name_one(project: Path) -> None:
    done = ask(None, project, "--ask")
    assert done.returncode == 2
    assert "TOOLROLL_AGENT_MODEL" in done.stderr


def test_the_missing_libraries_are_named_with_the_extra(project: Path) -> None:
    code = (
        "import sys; sys.modules['rich'] = None; sys.argv = ['x', '--interactive'];"
        "from toolroll_dispatch_agent.__main__ import run; raise SystemExit(run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
        env=environment(None, project),
    )
    assert done.returncode == 2
    assert "needs rich: pip install 'toolroll[chat]'" in done.stderr


def test_settings_come_from_a_file_and_reach_the_model(model: Model, project: Path) -> None:
    (project / "system.txt").write_text("Answer in rhyme.")
    (project / "chat.toml").write_text(
        'system = "system.txt"\ntemperature = 0.25\nmax-tokens = 50\nverbose = true\n'
    )
    server = model(SEARCH, play.say("Yes."))
    done = ask(server, project, "--ask", "--config", "chat.toml", "--max-tokens", "70")
    assert done.stdout == "Yes.\n"
    assert "GrepTool" in done.stderr
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"]) == (0.25, 70)
    assert body["messages"][0] == {"role": "system", "content": "Answer in rhyme."}


def test_a_history_in_a_pipe_forgets_the_oldest_questions(model: Model, project: Path) -> None:
    server = model(play.say("Blue. " * 100))
    for question in ("first?", "second?", "third?"):
        options = ("--ask", "--history", "talk.json", "--context-tokens", "500")
        assert ask(server, project, *options, question=question).returncode == 0
    assert [text for role, text in said(server.requests[2]) if role == "user"] == [
        *("second?", "third?")
    ]


def test_writing_tools_are_offered_and_used_when_they_are_allowed(
    model: Model, project: Path
) -> None:
    edit = {"command": sys.executable, "args": ["-m", "toolroll_edit", "--root", str(project)]}
    (project / "servers.json").write_text(json.dumps({"mcpServers": {"files": edit}}))
    change = {"file_path": "app.py", "old_string": "find", "new_string": "seek"}
    server = model(play.call(("mcp_files_Edit", change)), play.say("Renamed."))
    done = ask(server, project, "--ask", "--mcp-servers", "servers.json", "--allow-writes")
    assert done.stdout == "Renamed.\n", done.stderr
    assert "def seek(name)" in (project / "app.py").read_text()
    offered = [one["function"]["name"] for one in server.requests[0].body["tools"]]
    assert "mcp_files_Edit" in offered


# -- its parts -----------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["a", "- b", "", "```", "~~~ py", "# c"])).map("\n".join))
def test_blocks_cut_nothing_away_and_no_fence_open(text: str) -> None:
    done, rest = blocks(text)
    assert done + rest == text
    assert len(re.findall(r"^(?:```|~~~)", done, re.MULTILINE)) % 2 == 0
    assert done == "" or done.endswith("\n")


def test_a_growing_text_is_printed_block_by_block() -> None:
    assert blocks("one\n\ntwo") == ("one\n\n", "two")
    assert blocks("```\na\n\nb") == ("", "```\na\n\nb")


@given(st.lists(st.sampled_from(["user", "assistant", "tool"])), st.integers(0, 400))
def test_the_newest_questions_are_kept_whole(roles: list[str], chars: int) -> None:
    messages = [{"role": role, "content": "x" * 20} for role in ["user", *roles]]
    kept = newest(messages, chars)
    assert kept == messages[len(messages) - len(kept) :]
    assert kept[0]["role"] == "user"
    whole = sum(len(str(one)) for one in kept)
    assert whole <= chars or not any(one["role"] == "user" for one in kept[1:])
    assert newest([], chars) == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"messages": 3}', '{"messages": [{"role": "system", "content": "x"}]}'],
)
def test_a_file_that_holds_no_conversation_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "talk.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"talk\.json"):
        load(str(path))


def test_what_is_saved_is_loaded_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    assert load(str(path)) == []
    for messages in ([{"role": "user", "content": "é\n"}], []):
        save(str(path), messages)
        assert load(str(path)) == messages
    assert os.listdir(tmp_path) == ["talk.json"]
