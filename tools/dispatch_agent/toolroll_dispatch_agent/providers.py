"""Which model an agent asks, where and with what key; asks none, and nothing unless it was told to.

Hosts put their own keys into a server's environment: a key that is merely there is never used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Json = Any

KEY = "TOOLROLL_AGENT_API_KEY"
"""Our own variable, which goes before a provider's."""

KEY_COMMAND_S = 30.0
"""How long the command may take that prints a token: some ask a server for it."""

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


def choose(options: "Mapping[str, Json]", environ: "Mapping[str, str]") -> Choice:
    """The model to ask, with its key.

    Raises: NoModelError.
    """
    model, address = options.get("agent-model"), options.get("agent-base-url")
    if address and model:
        return Choice("", model, model, address, _own_key(options, environ) or NO_KEY)
    if address:
        raise NoModelError(
            "TOOLROLL_AGENT_BASE_URL is set; TOOLROLL_AGENT_MODEL must name a model there."
        )
    if not model:
        raise NoModelError(_how_to(environ))
    provider, _, name = model.partition("/")
    known = PROVIDERS[provider]
    usual = next((environ[key] for key in known.keys if environ.get(key)), "")
    key = _own_key(options, environ) or usual.strip() or (NO_KEY if known.free else "")
    if not key:
        where = " or ".join((KEY, *known.keys))
        raise NoModelError(
            f"TOOLROLL_AGENT_MODEL names {provider}, but there is no key: set {where}."
        )
    if provider == "vertex" and "/" not in name:
        name = f"google/{name}"
    return Choice(provider, name, model, known.address(environ), key)


def _own_key(options: "Mapping[str, Json]", environ: "Mapping[str, str]") -> str:
    """The key that was given to the agent itself, empty when none was.

    Raises: NoModelError when the command for it fails.
    """
    command = options.get("agent-api-key-cmd")
    if environ.get(KEY) or not command:
        return environ.get(KEY, "").strip()
    from subprocess import DEVNULL, PIPE, SubprocessError, run

    try:
        done = run(  # noqa: S602 - the operator's own command, which may have a pipe in it
            command, shell=True, stdin=DEVNULL, stdout=PIPE, check=True, timeout=KEY_COMMAND_S
        )
    except (OSError, SubprocessError) as problem:
        how = getattr(problem, "returncode", type(problem).__name__)
        raise NoModelError(f"The command of {KEY}_CMD failed ({how}).") from None
    words = done.stdout.decode("utf-8", "replace").split()
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
