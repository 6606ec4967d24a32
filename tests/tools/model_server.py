"""A chat-completions server on loopback that plays a script, one act for each request; knows no agent."""

import json
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self

Json = Any
WAIT_S = 30.0
PIECE_CHARS = 7


class Request:
    """What was asked: the JSON body and the headers, their names in lower case."""

    def __init__(self, body: Json, headers: dict[str, str]) -> None:
        self.body = body
        self.headers = headers

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.body["messages"]
        return messages

    @property
    def results(self) -> list[str]:
        """The texts of all results of tools."""
        return [one["content"] for one in self.messages if one["role"] == "tool"]


Act = Callable[["Handler", Request], None]


class ModelServer(ThreadingHTTPServer):
    """Serves while its `with` block runs; the last act of the script is played again and again."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Sequence[Act]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.requests: list[Request] = []
        self.hung_up = Event()  # set when a client has gone without its answer
        self.waiting = Event()  # set when a client is being kept waiting
        self._turn = Lock()
        self.address = f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def next_act(self, request: Request) -> Act:
        with self._turn:
            self.requests.append(request)
            return self.script[min(len(self.requests), len(self.script)) - 1]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = Request(body, {name.lower(): value for name, value in self.headers.items()})
        self.server.next_act(request)(self, request)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""

    def reply(self, status: int, body: Json, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, pieces: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in pieces:
            data = piece if isinstance(piece, str) else json.dumps(piece)
            self.wfile.write(f"data: {data}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True


# -- acts --------------------------------------------------------------------------------------------


def say(text: str, *, reason: str = "stop", usage: bool = True, **fields: Json) -> Act:
    """Answer with a text."""
    return answer({"role": "assistant", "content": text, **fields}, reason, usage)


def call(*calls: tuple[str, Json], text: str | None = None, **fields: Json) -> Act:
    """Answer with calls of tools; arguments that are a text are sent as they are."""
    made = [
        {
            "id": f"id_{number}_{name}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
            **fields,
        }
        for number, (name, given) in enumerate(calls)
    ]
    return answer({"role": "assistant", "content": text, "tool_calls": made}, "tool_calls")


def answer(message: Json, reason: str, usage: bool = True) -> Act:
    """Answer with a message: in pieces when it was asked for so."""
    counted = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

    def act(handler: Handler, request: Request) -> None:
        if request.body.get("stream"):
            handler.stream(pieces_of(message, reason, counted))
            return
        choice = {"index": 0, "message": message, "finish_reason": reason}
        body: Json = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        body["choices"] = [choice]
        handler.reply(200, {**body, "usage": counted} if usage else body)

    return act


def pieces_of(message: Json, reason: str, usage: Json) -> Iterator[Json]:
    """A message as a stream has it, every text cut small."""

    def piece(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    yield piece({"role": "assistant", "content": ""})
    text = message.get("content") or ""
    for at in range(0, len(text), PIECE_CHARS):
        yield piece({"content": text[at : at + PIECE_CHARS]})
    for index, made in enumerate(message.get("tool_calls") or ()):
        name, arguments = made["function"]["name"], made["function"]["arguments"]
        head = {**made, "index": index, "function": {"name": name, "arguments": ""}}
        yield piece({"tool_calls": [head]})
        for at in range(0, len(arguments), PIECE_CHARS):
            part = {"arguments": arguments[at : at + PIECE_CHARS]}
            yield piece({"tool_calls": [{"index": index, "function": part}]})
    yield piece({}, reason)
    yield {**piece({}), "choices": [], "usage": usage}
    yield "[DONE]"


def refuse(status: int, message: str = "no", code: str = "", **headers: str) -> Act:
    """Answer with an error, as OpenAI writes it."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code or None}}
    return lambda handler, _: handler.reply(status, body, **headers)


def raw(status: int, data: bytes) -> Act:
    """Answer with these bytes."""
    return lambda handler, _: handler.reply(status, data)


def drop(handler: Handler, _: Request) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def break_off(handler: Handler, request: Request) -> None:
    """Close the connection in the middle of an answer."""
    handler.close_connection = True
    if request.body.get("stream"):
        pieces = pieces_of({"content": "It lies in "}, "stop", {})
        handler.stream(piece for _, piece in zip(range(2), pieces, strict=False))
        return
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')


def wait(handler: Handler, _: Request) -> None:
    """Say nothing until the client goes."""
    handler.server.waiting.set()
    handler.connection.settimeout(WAIT_S)
    try:
        gone = not handler.connection.recv(1)
    except TimeoutError:
        gone = False
    except OSError:
        gone = True
    if gone:
        handler.server.hung_up.set()
    handler.close_connection = True


def torn(handler: Handler, _: Request) -> None:
    """Break a stream off in the middle of its text, so that the client notices."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for piece in list(pieces_of({"content": "It lies in the"}, "stop", {}))[:2]:
        data = f"data: {json.dumps(piece)}\n\n".encode()
        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.close_connection = True
