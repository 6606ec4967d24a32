"""Which model is asked and how: providers, keys, streams; without any network."""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

from tests.tools import model_server as play
from tests.tools.model_server import ModelServer
from toolroll.call import Call
from toolroll.errors import ToolError
from toolroll.guard import Guard
from toolroll.tool import Outcome
from toolroll_dispatch_agent import providers
from toolroll_dispatch_agent.providers import NO_KEY, PROVIDERS, Choice, NoModelError, check, choose
from toolroll_dispatch_agent.tool import dispatch_agent

Json = Any
KEY = "sk-Zk81PqLw93xTn5Vb"
WAIT_S = 20.0

ADDRESSES = {
    "openai": ("openai/one", {"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1", "one"),
    "gemini": (
        "gemini/one",
        {"GEMINI_API_KEY": KEY},
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "one",
    ),
    "gemini by Google's name": (
        "gemini/one",
        {"GOOGLE_API_KEY": KEY},
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "one",
    ),
    "vertex": (
        "vertex/one",
        {"GOOGLE_CLOUD_PROJECT": "shop", "GOOGLE_OAUTH_ACCESS_TOKEN": KEY},
        "https://aiplatform.googleapis.com/v1/projects/shop/locations/global/endpoints/openapi",
        "google/one",
    ),
    "vertex in a region": (
        "vertex/meta/one",
        {
            "GOOGLE_CLOUD_PROJECT": "shop",
            "GOOGLE_CLOUD_LOCATION": "us-east5",
            "CLOUDSDK_AUTH_ACCESS_TOKEN": KEY,
        },
        "https://us-east5-aiplatform.googleapis.com/v1/projects/shop/locations/us-east5/endpoints/openapi",
        "meta/one",
    ),
    "anthropic": (
        "anthropic/one",
        {"ANTHROPIC_API_KEY": KEY},
        "https://api.anthropic.com/v1",
        "one",
    ),
    "openrouter": (
        "openrouter/vendor/one",
        {"OPENROUTER_API_KEY": KEY},
        "https://openrouter.ai/api/v1",
        "vendor/one",
    ),
}


@pytest.mark.parametrize(("model", "environ", "address", "name"), ADDRESSES.values(), ids=ADDRESSES)
def test_a_provider_is_asked_with_its_usual_key(
    model: str, environ: Mapping[str, str], address: str, name: str
) -> None:
    choice = choose({"agent-model": model}, environ)
    assert (choice.address, choice.name, choice.key) == (address, name, KEY)
    assert choice.label == model


OLLAMAS = {
    "": "http://127.0.0.1:11434/v1",
    "0.0.0.0": "http://127.0.0.1:11434/v1",
    "box": "http://box:11434/v1",
    "box:8080": "http://box:8080/v1",
    "https://box/": "https://box/v1",
    "[::1]": "http://[::1]:11434/v1",
}


@pytest.mark.parametrize("host", OLLAMAS)
def test_ollama_needs_no_key_and_may_be_elsewhere(host: str) -> None:
    choice = choose({"agent-model": "ollama/one:7b"}, {"OLLAMA_HOST": host})
    assert (choice.address, choice.name, choice.key) == (OLLAMAS[host], "one:7b", NO_KEY)


def test_an_address_takes_the_model_as_it_stands_and_no_providers_key() -> None:
    options = {"agent-base-url": "http://127.0.0.1:8000/v1", "agent-model": "vendor/one"}
    choice = choose(options, {"OPENAI_API_KEY": KEY})
    assert (choice.address, choice.name, choice.key) == (
        "http://127.0.0.1:8000/v1",
        "vendor/one",
        NO_KEY,
    )


def test_the_agents_own_key_goes_before_a_providers() -> None:
    environ = {"OPENAI_API_KEY": "other", "TOOLROLL_AGENT_API_KEY": KEY}
    assert choose({"agent-model": "openai/one"}, environ).key == KEY


def test_a_command_may_print_the_key() -> None:
    options = {"agent-model": "openai/one", "agent-api-key-cmd": f"echo {KEY}; echo more"}
    assert choose(options, {"OPENAI_API_KEY": "other"}).key == KEY


@pytest.mark.parametrize(
    ("command", "why"), [("exit 3", "failed (3)"), ("true", "printed nothing")]
)
def test_a_command_without_a_key_is_said(command: str, why: str) -> None:
    options = {"agent-model": "openai/one", "agent-api-key-cmd": command}
    with pytest.raises(NoModelError, match=why.replace("(", r"\(").replace(")", r"\)")):
        choose(options, {})


def waits(pid_file: Path) -> str:
    """A command that notes the process it leaves waiting, and waits for it."""
    return f"sleep 60 & echo $! > '{pid_file}.new'; mv '{pid_file}.new' '{pid_file}'; wait"


def ends(pid_file: Path) -> bool:
    """True as soon as the process is gone, or a zombie that nobody reaps."""
    stat = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    deadline = monotonic() + WAIT_S
    while monotonic() < deadline:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        sleep(0.01)
    return False


def test_a_cancelled_call_ends_the_command_for_its_key(
    make_call: Any, answer: Any, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    options = {"agent_model": "openai/one", "agent_api_key_cmd": waits(pid_file)}
    call: Call = make_call(tmp_path, **options)

    def cancel_once_it_runs() -> None:
        if pid_file.exists():
            call.cancel()
        call.check()

    with pytest.raises(ToolError, match="cancelled"):
        choose(call.options, {}, cancel_once_it_runs)
    assert ends(pid_file)
    assert not providers.RUNNING


def test_a_command_for_a_key_is_ended_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    options = {"agent-model": "openai/one", "agent-api-key-cmd": waits(pid_file)}

    def let_time_run_out() -> None:
        if pid_file.exists():
            monkeypatch.setattr(providers, "KEY_COMMAND_S", 0.0)

    with pytest.raises(NoModelError, match=r"failed \(TimeoutExpired\)"):
        choose(options, {}, let_time_run_out)
    assert ends(pid_file)


def test_a_server_that_ends_takes_the_command_for_a_key_with_it(wire: Any, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    environ = {
        "TOOLROLL_AGENT_MODEL": "openai/one",
        "TOOLROLL_AGENT_API_KEY_CMD": waits(pid_file),
    }
    agent = wire("toolroll_dispatch_agent", "--root", tmp_path, environ=environ).open()
    agent.post("tools/call", {"name": "dispatch_agent", "arguments": {"prompt": "Where?"}})
    deadline = monotonic() + WAIT_S
    while not pid_file.exists():
        assert monotonic() < deadline
        sleep(0.01)
    agent.process.terminate()
    agent.process.wait(WAIT_S)
    assert ends(pid_file)
    agent.close()


def test_what_a_command_for_a_key_leaves_behind_is_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = f"sleep 60 >&- & echo $! > '{pid_file}'; echo {KEY}"
    assert choose({"agent-model": "openai/one", "agent-api-key-cmd": command}, {}).key == KEY
    assert ends(pid_file)


def test_a_key_that_is_merely_there_is_named_with_its_line() -> None:
    environ = {"ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
    with pytest.raises(NoModelError) as caught:
        choose({}, environ)
    assert str(caught.value).split("\n") == [
        "No model is configured.",
        "GOOGLE_API_KEY is set but not used; to use it: TOOLROLL_AGENT_MODEL=gemini/<model>",
        "ANTHROPIC_API_KEY is set but not used; to use it: TOOLROLL_AGENT_MODEL=anthropic/<model>",
    ]


def test_a_provider_without_a_key_names_the_variables() -> None:
    with pytest.raises(NoModelError, match="set TOOLROLL_AGENT_API_KEY or GEMINI_API_KEY or"):
        choose({"agent-model": "gemini/one"}, {"OPENAI_API_KEY": KEY})


@pytest.mark.parametrize(
    "options",
    [
        {"agent-model": "one"},
        {"agent-model": "openai/"},
        {"agent-model": "nobody/one"},
        {"agent-model": "one", "agent-base-url": "box:8000"},
    ],
)
def test_a_model_that_cannot_be_meant_is_refused_at_the_start(options: dict[str, Json]) -> None:
    with pytest.raises(ValueError, match="--agent-"):
        check(options)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_may_be_named(provider: str) -> None:
    check({"agent-model": f"{provider}/one"})


def test_without_the_library_the_answer_says_how_to_get_it(
    make_call: Any, answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    call: Call = make_call(tmp_path, agent_base_url="http://127.0.0.1:9/v1", agent_model="m")
    outcome: Outcome = answer(dispatch_agent, call, prompt="Where is main?")
    assert "pip install 'toolroll[agent]'" in outcome.text
    assert outcome.structured["status"] == "no_model"


# -- streams: what a terminal shows as it comes --------------------------------------------------------


def streamed(
    *script: play.Act, fields: dict[str, Json] | None = None
) -> tuple[Json, list[str], ModelServer]:
    """The message of one streamed reply, the pieces of its text, the server."""
    pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")
    from toolroll_dispatch_agent.models import Model

    pieces: list[str] = []
    with ModelServer(script) as server:
        choice = Choice("", "m", "m", server.address, NO_KEY)
        with Model(choice, {"temperature": 0.5}) as model:
            messages = [{"role": "user", "content": "hello"}]
            reply = model.ask(messages, fields or {}, 20.0, pieces.append)
    assert reply.tokens == 110
    return reply.message, pieces, server


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("OPENAI_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_streamed_text_is_given_on_in_pieces() -> None:
    text = "It is in src/app.py:4 and nowhere else."
    message, pieces, server = streamed(play.say(text))
    assert message == {"role": "assistant", "content": text}
    assert len(pieces) > 3
    assert "".join(pieces) == text
    assert server.requests[0].body["temperature"] == 0.5


def test_streamed_calls_are_joined() -> None:
    calls = (("View", {"file_path": "src/app.py"}), ("LS", {"path": "src"}))
    message, pieces, _ = streamed(play.call(*calls, text="Let me look."))
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["View", "LS"]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"file_path": "src/app.py"}'
    assert "".join(pieces) == message["content"] == "Let me look."


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    calls: list[Json] = [
        {"index": 0, "id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("View", "LS")
    ]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"tool_calls": [one]}, "finish_reason": None}]}
        for one in calls
    ]
    chunks.append({**head, "choices": [], "usage": usage})
    message, _, _ = streamed(lambda handler, _: handler.stream(iter(chunks)))
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["View", "LS"]


def test_a_stream_that_breaks_before_its_first_word_is_asked_for_again() -> None:
    message, pieces, server = streamed(
        play.refuse(500, retry_after="0"), play.drop, play.say("Fine.")
    )
    assert len(server.requests) == 3
    assert message["content"] == "".join(pieces) == "Fine."


def test_a_stream_that_breaks_after_words_were_shown_is_an_error() -> None:
    pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")
    from toolroll_dispatch_agent.models import Model, ModelError

    pieces: list[str] = []
    with (
        ModelServer([play.torn]) as server,
        Model(Choice("", "m", "m", server.address, NO_KEY)) as model,
        pytest.raises(ModelError, match="broke in the middle"),
    ):
        model.ask([{"role": "user", "content": "hello"}], {}, 20.0, pieces.append)
    assert pieces
    assert len(server.requests) == 1


def test_nobody_waits_for_the_resolver_once_the_model_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")
    from toolroll_dispatch_agent.models import Model

    closed, waited = Event(), Event()
    outcomes: list[bool] = []
    model = Model(Choice("", "m", "m", "http://far.invalid/v1", NO_KEY))

    def resolve(*_: object, **__: object) -> Json:
        model.stop()
        outcomes.append(closed.wait(WAIT_S))
        waited.set()
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with model, pytest.raises(asyncio.CancelledError):
        model.ask([{"role": "user", "content": "hello"}], {}, WAIT_S)
    closed.set()
    assert waited.wait(WAIT_S)
    assert outcomes == [True]


def test_a_name_that_cannot_be_resolved_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")
    from toolroll_dispatch_agent import models

    def resolve(*_: object, **__: object) -> Json:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(models, "TRIES", 1)
    with (
        models.Model(Choice("", "m", "m", "http://far.invalid/v1", NO_KEY)) as model,
        pytest.raises(models.ModelError, match="no answer from the provider"),
    ):
        model.ask([{"role": "user", "content": "hello"}], {}, WAIT_S)


SAYINGS = {
    "a refusal": lambda text: play.refuse(400, text),
    "an error under status 200": lambda text: play.raw(
        200, json.dumps({"error": {"code": 400, "message": text}}).encode()
    ),
    "no completion": lambda text: play.raw(200, json.dumps(text).encode()),
}


@pytest.mark.parametrize("saying", SAYINGS.values(), ids=SAYINGS)
def test_what_a_provider_says_is_masked_before_it_is_cut(saying: Any) -> None:
    pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")
    from toolroll_dispatch_agent.models import Model, ModelError

    key = KEY * 50  # wherever the cut is, it goes through it
    with (
        ModelServer([saying(f"bad key {key}, {'x' * 5000}")]) as server,
        Model(
            Choice("", "m", "m", server.address, NO_KEY),
            clean=Guard({"OPENAI_API_KEY": key}).mask,
        ) as model,
        pytest.raises(ModelError) as caught,
    ):
        model.ask([{"role": "user", "content": "hello"}], {}, WAIT_S)
    assert "bad key [REDACTED:OPENAI_API_KEY], xxx" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) == 600
