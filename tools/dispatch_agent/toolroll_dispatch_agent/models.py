"""A model that is asked over the chat-completions API: retried, counted, stopped from any thread.

Knows neither tools nor limits: messages in, the next message out, all plain dicts.
"""

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from email.utils import mktime_tz, parsedate_tz
from itertools import count
from threading import Thread
from time import monotonic, time

import openai

from toolroll.jsontext import dumps, loads
from toolroll_dispatch_agent.providers import Choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

    Json = Any
    Listener = Callable[[str], None]

CONNECT_S = 10.0
"""How long a connection may take; how long an answer may take is the asker's."""

TRIES = 6
"""Requests for one answer, the first included: with the pauses below about 30 s of trouble."""

PAUSE_S, LONGEST_PAUSE_S = 0.5, 16.0
"""The pause after the first failure, doubled after each, where the provider names none."""

PASSING = (408, 409, 429)
"""Refusals that may be over in a moment, besides all of 500 and above."""

SPENT = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of a 429 that no pause will cure."""

KEPT = ("reasoning_content", "reasoning_details", "extra_content")
"""What some providers send beside the text and want back with it, or forget their own reasoning."""

CUT = "[truncated: the provider's own limit ended the answer here]"

ERROR_CHARS = 600
"""What is quoted of a refusal."""


class ModelError(Exception):
    """The model gave no answer, and asking again would not help."""


class OutOfTimeError(Exception):
    """The model gave no answer within the time it had."""


class RefusedError(Exception):
    """One request that failed; `status` is 0 where nothing came back, `after_s` when to try again."""

    def __init__(
        self, text: str, status: int = 0, code: str = "", after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.after_s = after_s

    @property
    def passing(self) -> bool:
        """True when the same request may work a moment later."""
        if self.code in SPENT:
            return False
        return self.status == 0 or self.status in PASSING or self.status >= 500


class Reply:
    """An answer: the assistant's `message`, the tokens of the request and of both together, or None."""

    __slots__ = ("message", "sent_tokens", "tokens")

    def __init__(self, completion: "Json") -> None:
        """Raises: RefusedError for what is no completion, as an error under status 200."""
        choices = completion.get("choices") if isinstance(completion, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
            raise _no_completion(completion)
        self.message = _message(first["message"])
        if first.get("finish_reason") == "length" and "tool_calls" not in self.message:
            self.message["content"] = f"{self.message['content'] or ''}\n{CUT}".lstrip()
        usage = completion.get("usage") or {}
        self.sent_tokens: int | None = usage.get("prompt_tokens")
        self.tokens: int | None = usage.get("total_tokens")


class Lookups(ThreadPoolExecutor):
    """Threads for the resolver, which nobody waits for: it cannot be stopped, and may take minutes."""

    def submit(
        self, fn: "Callable[..., Json]", /, *args: "Json", **kwargs: "Json"
    ) -> "Future[Json]":
        """What the function will have given, from a thread of its own."""
        future: Future[Json] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as problem:  # whoever awaits it is to have it
                future.set_exception(problem)

        Thread(target=run, name="lookup", daemon=True).start()
        return future


class Model:
    """One model during one task, asked by one thread; `stop` may come from any.

    `settings` are further fields of each request (temperature, max_tokens).  `on_retry` is told why
    a request is made again.  `clean` masks what a provider says, before it is cut.
    """

    def __init__(
        self,
        choice: Choice,
        settings: "Mapping[str, Json] | None" = None,
        on_retry: "Listener | None" = None,
        clean: "Callable[[str], str]" = str,
    ) -> None:
        self.label = choice.label
        self._name = choice.name
        self._settings = dict(settings or {})
        self._on_retry = on_retry or (lambda _: None)
        self._clean = clean
        self._client = openai.AsyncOpenAI(
            api_key=choice.key,
            base_url=choice.address,
            timeout=openai.Timeout(None, connect=CONNECT_S),
            max_retries=0,  # ours keep to the task's time and are told
            default_headers=_headers(choice),
        )
        self._runner = asyncio.Runner()
        self._runner.get_loop().set_default_executor(Lookups())
        self._task: asyncio.Task[Json] | None = None
        self._stopped = False

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        messages: "list[Json]",
        fields: "Mapping[str, Json]",
        timeout_s: float,
        on_text: "Listener | None" = None,
    ) -> Reply:
        """The model's next message; `fields` go into the request, as tools do.

        With `on_text` the answer is streamed, and its text given on as it comes.

        Raises: ModelError, OutOfTimeError, asyncio.CancelledError after `stop`.
        """
        request = {"model": self._name, "messages": messages, **self._settings, **fields}
        return self._runner.run(self._ask(request, monotonic() + timeout_s, on_text))

    def stop(self) -> None:
        """End what is being asked and ask nothing more: the connection is closed, the provider notices."""
        self._stopped = True
        task = self._task
        if task is not None:
            try:
                task.get_loop().call_soon_threadsafe(task.cancel)
            except RuntimeError:  # the loop was closed meanwhile
                return

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._client.close())
        self._runner.close()

    async def _ask(self, request: "Json", deadline: float, on_text: "Listener | None") -> Reply:
        self._task = asyncio.current_task()
        if self._stopped:
            raise asyncio.CancelledError
        try:
            async with asyncio.timeout(max(deadline - monotonic(), 0.0)):
                return await self._patiently(request, deadline, on_text)
        except TimeoutError:
            raise OutOfTimeError from None

    async def _patiently(
        self, request: "Json", deadline: float, on_text: "Listener | None"
    ) -> Reply:
        """The reply of the first request that succeeds."""
        for attempt in count():
            try:
                return await self._once(request, on_text)
            except RefusedError as refusal:
                pause_s = min(PAUSE_S * 2**attempt, LONGEST_PAUSE_S)
                if refusal.after_s is not None:
                    pause_s = refusal.after_s
                text = " ".join(self._clean(str(refusal)).split())[:ERROR_CHARS]
                if not refusal.passing or attempt + 1 >= TRIES:
                    raise ModelError(text) from None
                if monotonic() + pause_s >= deadline:
                    why = f"{text}; it asks to wait {pause_s:g} s, longer than there is"
                    raise ModelError(why) from None
                self._on_retry(f"{text}; again in {pause_s:.3g} s")
                await asyncio.sleep(pause_s)
        raise AssertionError("count() has no end")

    async def _once(self, request: "Json", on_text: "Listener | None") -> Reply:
        """Raises: RefusedError."""
        try:
            if on_text is not None:
                return Reply(await self._streamed(request, on_text))
            completions = self._client.chat.completions
            answer = await completions.with_raw_response.create(**request)
            return Reply(_json(answer.http_response.content))
        except openai.APIError as problem:
            raise _refusal(problem) from None

    async def _streamed(self, request: "Json", on_text: "Listener") -> "Json":
        """The completion that the pieces of a stream make.

        Raises: RefusedError; ModelError when the stream breaks after text was given on.
        """
        joint = Joint(on_text)
        completions = self._client.chat.completions
        stream = await completions.create(
            stream=True, stream_options={"include_usage": True}, **request
        )
        async with stream:
            try:
                async for piece in stream:
                    joint.add(piece.model_dump(exclude_none=True, warnings=False))
            except asyncio.CancelledError:
                raise
            except Exception as problem:  # the HTTP library's own, which openai passes on
                text = f"the connection broke in the middle of an answer ({type(problem).__name__})"
                if joint.said:
                    raise ModelError(text) from None
                raise RefusedError(text) from None
        return joint.completion()


class Joint:
    """The pieces of a streamed completion, joined."""

    def __init__(self, on_text: "Listener") -> None:
        self.said = False
        self._on_text = on_text
        self._message: dict[str, Json] = {}
        self._calls: dict[Json, dict[str, Json]] = {}
        self._reason: str | None = None
        self._usage: Json = None

    def add(self, piece: "dict[str, Json]") -> None:
        """Take one piece in; the last one often holds nothing but the usage."""
        self._usage = piece.get("usage") or self._usage
        for choice in piece.get("choices", [])[:1]:
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta") or {}
            for name in ("content", *KEPT):
                self._grow(self._message, name, delta.get(name))
            if delta.get("content"):
                self.said = True
                self._on_text(delta["content"])
            for part in delta.get("tool_calls") or []:
                self._add_call(part)

    def completion(self) -> "Json":
        """What an answer in one piece would have been."""
        if not self._message and not self._calls and self._reason is None:
            raise RefusedError("the stream ended without an answer")
        message = {**self._message, "tool_calls": list(self._calls.values())}
        choice = {"message": message, "finish_reason": self._reason}
        return {"choices": [choice], "usage": self._usage}

    def _add_call(self, part: "dict[str, Json]") -> None:
        """Some servers number all calls of a turn 0: a new id begins a new one."""
        index = part.get("index", 0)
        known = self._calls.get(index)
        if known is not None and part.get("id") and part["id"] != known.get("id"):
            index = (index, part["id"])
        call = self._calls.setdefault(index, {"type": "function", "function": {}})
        call.update({key: value for key, value in part.items() if key not in ("index", "function")})
        for name, value in (part.get("function") or {}).items():
            if name == "arguments":
                self._grow(call["function"], name, value)
            else:
                call["function"][name] = value

    def _grow(self, whole: "dict[str, Json]", name: str, part: "Json") -> None:
        if isinstance(part, str | list):
            whole[name] = whole[name] + part if name in whole else part
        elif part is not None:
            whole[name] = part


def _message(message: "dict[str, Json]") -> "dict[str, Json]":
    """The assistant's message as it goes back: its text, its calls whole, what its provider wants kept."""
    content = message.get("content") or message.get("refusal")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    kept = {name: message[name] for name in KEPT if message.get(name)}
    whole: dict[str, Json] = {"role": "assistant", "content": content or None, **kept}
    calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    if calls:
        whole["tool_calls"] = [_call(call, number) for number, call in enumerate(calls)]
    return whole


def _call(call: "dict[str, Json]", number: int) -> "dict[str, Json]":
    """A call with all that must be there: some servers give no id, or arguments that are no text."""
    function: Json = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments") or "{}"
    if not isinstance(arguments, str):
        arguments = dumps(arguments).decode()
    function = {**function, "name": str(function.get("name") or ""), "arguments": arguments}
    return {
        **call,
        "id": call.get("id") or f"call_{number}",
        "type": "function",
        "function": function,
    }


def _json(data: bytes) -> "Json":
    try:
        return loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _no_completion(value: "Json") -> RefusedError:
    """For what came with status 200 and is no answer: OpenRouter reports errors so."""
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        status = error.get("code")
        text = error.get("message", "")
        return RefusedError(
            f"the provider says: {text}", status if isinstance(status, int) else 500
        )
    quoted = value if isinstance(value, str) else dumps(value).decode()
    return RefusedError(f"the answer is no chat completion: {quoted}", 200)


def _refusal(problem: openai.APIError) -> RefusedError:
    if not isinstance(problem, openai.APIStatusError):
        cause = type(problem.__cause__ or problem).__name__
        return RefusedError(f"no answer from the provider ({cause})")
    code = problem.code or ""
    text = f"the provider says: {problem.message}"
    return RefusedError(text, problem.status_code, code, _after_s(problem.response.headers))


def _after_s(headers: "Mapping[str, str]") -> float | None:
    """How long the provider asks to wait: RFC 9110 section 10.2.3, and in milliseconds as OpenAI does."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) * unit_s, 0.0)
        except (KeyError, ValueError):
            continue
    date = parsedate_tz(headers.get("retry-after", ""))
    return None if date is None else max(mktime_tz(date) - time(), 0.0)


def _headers(choice: Choice) -> "dict[str, Json]":
    """Whose account and what headers the library would take from OPENAI_* variables stay with OpenAI."""
    headers: dict[str, Json] = {"Authorization": f"Bearer {choice.key}"}
    if choice.provider == "openai":
        return headers
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    others = [name for name in names if name.lower() != "authorization"]
    kept_back = ("OpenAI-Organization", "OpenAI-Project", *others)
    return {**{name: openai.Omit() for name in kept_back}, **headers}
