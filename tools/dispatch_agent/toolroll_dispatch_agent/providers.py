"""Which model an agent asks, where and with what key; asks none, and nothing unless it was told to.

Hosts put their own keys into a server's environment: a key that is merely there is never used.
"""

import os
from _thread import allocate_lock
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from subprocess import Popen
    from typing import Any

    Json = Any

KEY = "TOOLROLL_AGENT_API_KEY"
"""Our own variable, which goes before a provider's."""

KEY_COMMAND_S = 30.0
"""How long the command may take that prints a token: some ask a server for it."""

LOOK_S = 0.05
"""How often that command's caller is asked whether it is still wanted."""

KILLED_S = 0.5
"""How long a killed command is waited for: one that became another user's cannot be killed."""

RUNNING: "set[Any]" = set()
"""What the server's end must end, by its `close()`: commands for a key, and the tools of tasks."""

NO_KEY = "none"
"""What is sent to servers that want no key; the library insists on one."""


class NoModelError(Exception):
    """No model is to be asked; the text says why and what to do."""


class Provider:
    """A known provider: the address of its chat completions, the variables where its key usually lies."""

    __slots__ = ("address", "free", "keys")

    def __init__(
        self, address: "Callable[[Mapping[str, str]], str]", *keys: str, free: bool = False
    ) -> None:
        self.address = address
        self.keys = keys
        self.free = free


def _vertex(environ: "Mapping[str, str]") -> str:
    project = environ.get("GOOGLE_CLOUD_PROJECT")
    place = environ.get("GOOGLE_CLOUD_LOCATION") or "global"
    if not project:
        raise NoModelError(
            "vertex needs GOOGLE_CLOUD_PROJECT, and a location other than 'global' "
            "in GOOGLE_CLOUD_LOCATION."
        )
    host = "aiplatform" if place == "global" else f"{place}-aiplatform"
    path = f"v1/projects/{project}/locations/{place}/endpoints/openapi"
    return f"https://{host}.googleapis.com/{path}"


def _ollama(environ: "Mapping[str, str]") -> str:
    """OLLAMA_HOST may be a bare host, one with a port, or an address."""
    host = environ.get("OLLAMA_HOST") or "127.0.0.1"
    scheme, slashes, rest = host.rpartition("://")
    rest = rest.rstrip("/").replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - where a server listens is no address to ask
    port = "" if slashes or ":" in rest.rpartition("]")[2] else ":11434"
    return f"{scheme or 'http'}://{rest}{port}/v1"


PROVIDERS = {
    "openai": Provider(lambda _: "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "gemini": Provider(
        lambda _: "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
    ),
    "vertex": Provider(_vertex, "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
    "anthropic": Provider(lambda _: "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "openrouter": Provider(lambda _: "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Provider(_ollama, free=True),
}


class Choice:
    """A model that may be asked: its `name` there, the `address`, the `key` it is asked with.

    `label` is what a report calls it.  `provider` is empty for an address of one's own.
    """

    __slots__ = ("address", "key", "label", "name", "provider")

    def __init__(self, provider: str, name: str, label: str, address: str, key: str) -> None:
        self.provider = provider
        self.name = name
        self.label = label
        self.address = address
        self.key = key


def check(options: "Mapping[str, Json]") -> None:
    """Refuse a model that cannot be meant.

    Raises: ValueError.
    """
    model, address = options.get("agent-model"), options.get("agent-base-url")
    if address and not address.startswith(("http://", "https://")):
        raise ValueError(f"--agent-base-url '{address}' must begin with http:// or https://")
    if not model or address:
        return
    provider, _, name = model.partition("/")
    if provider not in PROVIDERS or not name:
        known = ", ".join(PROVIDERS)
        raise ValueError(
            f"--agent-model '{model}' must be provider/model with one of {known}; "
            "another server is named with --agent-base-url"
        )


class KeyCommand:
    """The command that prints the key, with all that it starts in a process group of its own."""

    __slots__ = ("_closed", "_lock", "_process")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._process: Popen[bytes] | None = None
        self._closed = False

    def output(self, command: str, check: "Callable[[], None]") -> bytes:
        """What it printed; whatever it has left running is ended.

        Raises: OSError, SubprocessError; what `check` raises, which is called all the while.
        """
        from subprocess import CalledProcessError, TimeoutExpired

        began = monotonic()
        RUNNING.add(self)
        try:
            process = self._start(command)
            while True:
                check()
                try:
                    printed, _ = process.communicate(timeout=LOOK_S)
                    break
                except TimeoutExpired:
                    if monotonic() - began >= KEY_COMMAND_S:
                        raise
            if process.returncode:
                raise CalledProcessError(process.returncode, command)
            return printed
        finally:
            RUNNING.discard(self)
            self.close()
            self._reap()

    def close(self) -> None:
        """End it, and all it has started; from any thread."""
        from signal import SIGKILL

        with self._lock:
            self._closed = True
            if self._process is None:
                return
            try:
                os.killpg(self._process.pid, SIGKILL)
            except OSError:  # nobody is left in it
                return

    def _start(self, command: str) -> "Popen[bytes]":
        """Raises: OSError."""
        from subprocess import DEVNULL, PIPE, Popen

        with self._lock:
            if self._closed:
                raise InterruptedError
            self._process = Popen(  # noqa: S602 - the operator's own command, which may have a pipe in it
                command, shell=True, stdin=DEVNULL, stdout=PIPE, start_new_session=True
            )
        return self._process

    def _reap(self) -> None:
        from subprocess import TimeoutExpired

        if self._process is None:
            return
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            self._process.wait(KILLED_S)
        except TimeoutExpired:
            return


def choose(
    options: "Mapping[str, Json]",
    environ: "Mapping[str, str]",
    check: "Callable[[], None]" = lambda: None,
) -> Choice:
    """The model to ask, with its key; `check` is called while a command for the key runs.

    Raises: NoModelError; what `check` raises.
    """
    model, address = options.get("agent-model"), options.get("agent-base-url")
    if address and model:
        return Choice("", model, model, address, _own_key(options, environ, check) or NO_KEY)
    if address:
        raise NoModelError(
            "TOOLROLL_AGENT_BASE_URL is set; TOOLROLL_AGENT_MODEL must name a model there."
        )
    if not model:
        raise NoModelError(_how_to(environ))
    provider, _, name = model.partition("/")
    known = PROVIDERS[provider]
    usual = next((environ[key] for key in known.keys if environ.get(key)), "")
    key = _own_key(options, environ, check) or usual.strip() or (NO_KEY if known.free else "")
    if not key:
        where = " or ".join((KEY, *known.keys))
        raise NoModelError(
            f"TOOLROLL_AGENT_MODEL names {provider}, but there is no key: set {where}."
        )
    if provider == "vertex" and "/" not in name:
        name = f"google/{name}"
    return Choice(provider, name, model, known.address(environ), key)


def _own_key(
    options: "Mapping[str, Json]", environ: "Mapping[str, str]", check: "Callable[[], None]"
) -> str:
    """The key that was given to the agent itself, empty when none was.

    Raises: NoModelError when the command for it fails; what `check` raises.
    """
    command = options.get("agent-api-key-cmd")
    if environ.get(KEY) or not command:
        return environ.get(KEY, "").strip()
    from subprocess import SubprocessError

    try:
        printed = KeyCommand().output(command, check)
    except (OSError, SubprocessError) as problem:
        how = getattr(problem, "returncode", type(problem).__name__)
        raise NoModelError(f"The command of {KEY}_CMD failed ({how}).") from None
    words = printed.decode("utf-8", "replace").split()
    if not words:
        raise NoModelError(f"The command of {KEY}_CMD printed nothing.")
    return words[0]


def _how_to(environ: "Mapping[str, str]") -> str:
    """That no model is configured, and the line that enables one: for a key that is there, its own."""
    found = [
        f"{key} is set but not used; to use it: TOOLROLL_AGENT_MODEL={name}/<model>"
        for name, provider in PROVIDERS.items()
        for key in provider.keys
        if environ.get(key)
    ]
    if environ.get(KEY):
        found.append(
            f"{KEY} is set but not used; to use it: TOOLROLL_AGENT_MODEL=<provider>/<model>"
        )
    how = "Set TOOLROLL_AGENT_MODEL=provider/model ({}), or TOOLROLL_AGENT_BASE_URL and a model's name."
    return "\n".join(["No model is configured.", *(found or [how.format(", ".join(PROVIDERS))])])


def library() -> None:
    """Return when the library that asks models is there.

    Raises: NoModelError.
    """
    from importlib.util import find_spec

    if find_spec("openai") is None:
        raise NoModelError(
            "A model is configured, but the library to ask it is missing: "
            "pip install 'toolroll[agent]'."
        )
