"""The conformance statement: what a stdio server that offers only tools owes its host, row by row.

Rows only: `script.py` has the words, `test_conformance.py` runs them, `scripts/protocol_table.py`
prints them.  A script is what is said to the server and what is heard from it, in order; things heard
next to each other may come in any order.  Whatever is heard beyond the script fails the row, and so
does a message that the official schema refuses, or a process that does not end with status 0.
"""

from jsonschema import Draft202012Validator

from tests.wire.script import (
    ABSENT,
    BAD,
    ENVELOPE,
    GOOD,
    HANDSHAKE,
    NO_ID,
    STATELESS,
    TOOL,
    End,
    Hear,
    Json,
    Row,
    Say,
    acknowledged,
    answer,
    call,
    cancel,
    do,
    error,
    initialize,
    line,
    modern,
    must,
    notify,
    plain,
    progress,
    request,
    robust,
    says,
    should,
)

PARSE, INVALID, METHOD, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022

STDIO = "transports: stdio"
RPC = "JSON-RPC 2.0"
BASE = "basic"
LIFECYCLE = "lifecycle"
VERSIONING = "versioning"
DISCOVER = "server/discover"
LISTEN = "subscriptions"
TOOLS = "tools"
CANCELLING = "cancellation"
PROGRESSING = "progress"
HOSTS = "seen in hosts"
OURS = "toolroll"

BATCHED, UNBATCHED = ("2025-03-26",), ("2025-06-18", "2025-11-25", *STATELESS)
TASKED = ("2025-11-25",)
VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY = ENVELOPE
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
UNDECLARED = (
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "tasks/list",
    "logging/setLevel",
)
REMOVED = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list")
MANY = 400
MIB = 1024 * 1024

EDGE_IDS = ("", "1", 1, 0, -1, 2**53 - 1)
HUGE_IDS = (2**53 + 1, 2**63 - 1, 2**64 + 1, 10**30 + 1)

NO_OBJECTS: tuple[Json, ...] = ([], "x", None, 5)
BAD_METAS: tuple[Json, ...] = (
    None,
    [],
    "x",
    {**ENVELOPE, VERSION_KEY: 5},
    {**ENVELOPE, CAPABILITIES_KEY: []},
    {**ENVELOPE, CLIENT_KEY: "me"},
)

LIST = request(1, "tools/list")
ALIVE = (request(99, "tools/list"), answer(99, tools=[{"name": TOOL}]))
"""The server goes on after whatever came before."""


def spelled(key: str = "1", method: str = "tools/list", params: str = "") -> str:
    """A request as JSON text, for what no JSON value can say."""
    return f'{{"jsonrpc":"2.0","id":{key},"method":"{method}","params":{{<M>{params}}}}}'


def listed(key: Json = 1, boxed: bool = False, /, **more: Json) -> Hear:
    """The answer to tools/list."""
    return answer(key, boxed, tools=[{"name": TOOL}], **more)


def result(key: Json) -> Json:
    """A member of a batch's answer."""
    return {"jsonrpc": "2.0", "id": key, "error": ABSENT, "result": {}}


def refusal(key: Json, code: int) -> Json:
    return error(key, code).pattern


def without(key: str) -> dict[str, Json]:
    """The stateless envelope without one of its members."""
    return {name: value for name, value in ENVELOPE.items() if name != key}


def is_ttl(value: Json) -> bool:
    return type(value) is int and value >= 0


def is_scope(value: Json) -> bool:
    return value in ("public", "private")


def is_sound_schema(value: Json) -> bool:
    """True for an object's JSON Schema 2020-12 whose required members exist, all members described."""
    Draft202012Validator.check_schema(value)
    properties = value["properties"]
    described = all(one.get("description") for one in properties.values())
    return value["type"] == "object" and described and {*value.get("required", ())} <= {*properties}


def is_annotated(value: Json) -> bool:
    hints = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    return isinstance(value["title"], str) and all(type(value[hint]) is bool for hint in hints)


def is_plain_name(value: Json) -> bool:
    return 0 < len(value) <= 64 and value.isascii() and value.replace("_", "").isalnum()


def is_full_of_spoken(refused: str) -> Json:
    """A list of supported versions that does not hold the refused one."""
    return lambda versions: (
        {*versions} <= {*STATELESS, *HANDSHAKE} - {refused} and len(versions) > 1
    )


SERVER = {"name": lambda name: name.startswith("toolroll-"), "version": bool}
DRESSED: dict[str, Json] = {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}}
CACHEABLE: dict[str, Json] = {**DRESSED, "ttlMs": is_ttl, "cacheScope": is_scope}

WIRE = (
    must(
        STDIO,
        "A message is one line of UTF-8, and nothing else is on stdout",
        LIST,
        listed(),
        call(2),
        answer(2, isError=False),
    ),
    robust(
        OURS,
        "What a tool and its children print goes to stderr; the stdin they see is empty",
        do(1, "stray"),
        says(1, "printed, read 0"),
        stderr="a stray print\nstray bytes\na child says so\n",
    ),
    must(
        STDIO,
        "Text is UTF-8 whatever the locale says",
        do(1, "echo", "é 漢 𝄞"),
        says(1, "é 漢 𝄞"),
        environ={
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONIOENCODING": "latin-1",
            "PYTHONCOERCECLOCALE": "0",
        },
    ),
    must(
        RPC,
        "White space around and inside a message is taken",
        line(
            ' \t{ "jsonrpc" :\t"2.0" , "id" : 1 , "method" : "tools/list" , "params" : { <M> } }\t '
        ),
        listed(),
    ),
    must(
        STDIO,
        "A message may come in pieces",
        line(spelled()[:20], end=""),
        line(spelled()[20:45], end=""),
        line(spelled()[45:]),
        listed(),
    ),
    must(
        STDIO,
        f"{MANY} messages in one write are all answered",
        *(request(key, "tools/list") for key in range(MANY)),
        *(listed(key) for key in range(MANY)),
    ),
    must(
        STDIO,
        "U+2028, U+2029, U+0085 and DEL inside a string end no line",
        request("\u2028.\u2029.\x85.\x7f", "tools/list"),
        listed("\u2028.\u2029.\x85.\x7f"),
    ),
    robust(
        STDIO,
        "Lines may end with CR LF",
        line(spelled(), end="\r\n"),
        listed(),
    ),
    robust(
        STDIO,
        "Blank lines are passed over",
        line(""),
        line(" \t\r"),
        LIST,
        listed(),
        line(""),
    ),
    robust(
        STDIO,
        "A last line without a newline is answered",
        line(spelled(), end=""),
        End(),
        listed(),
    ),
    robust(
        OURS,
        "A Content-Length block is answered in kind",
        Say(spelled(), header="Content-Length: {}\r\n\r\n"),
        listed(1, True),
    ),
    robust(
        OURS,
        "A block's header may be in any case, with LF and with further lines",
        Say(spelled(), header="content-LENGTH:{}\nContent-Type: application/json\n\n"),
        listed(1, True),
    ),
    robust(
        OURS,
        "A block may hold newlines, and lines may stand between blocks",
        Say(spelled().replace(",", ",\r\n"), header="Content-Length: {}\r\n\r\n"),
        request(2, "tools/list"),
        Say(spelled("3"), header="Content-Length: {}\r\n\r\n"),
        listed(1, True),
        listed(2),
        listed(3, True),
    ),
    robust(
        RPC,
        "A lone surrogate, which JSON's grammar allows, comes back escaped",
        line(spelled(r'"\ud800"')),
        listed("\ud800"),
    ),
)

JSON_RPC = (
    must(
        RPC,
        "What is not JSON is a parse error",
        line('{"jsonrpc":"2.0","id":1,"method":'),
        error(NO_ID, PARSE),
        *ALIVE,
    ),
    robust(
        RPC,
        "What is not UTF-8 is a parse error",
        line(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n', end=""),
        error(NO_ID, PARSE),
        *ALIVE,
    ),
    robust(
        RPC,
        "NaN and Infinity are a parse error",
        line(spelled("NaN")),
        error(NO_ID, PARSE),
        line(spelled(params=',"a":-Infinity')),
        error(NO_ID, PARSE),
    ),
    must(
        RPC,
        "A request that lacks its method or its version is invalid",
        line('{"jsonrpc":"2.0","id":5}'),
        error(5, INVALID),
        line('{"id":5,"method":"ping"}'),
        error(5, INVALID),
        line('{"jsonrpc":"1.0","id":5,"method":"ping"}'),
        error(5, INVALID),
        line('{"jsonrpc":"2.0","id":5,"method":42}'),
        error(5, INVALID),
        *ALIVE,
    ),
    must(
        RPC,
        "What is no request at all is invalid",
        *(
            step
            for text in ("42", "null", '"x"', "{}")
            for step in (line(text), error(NO_ID, INVALID))
        ),
    ),
    robust(
        BASE,
        "An id that is null, a boolean, a fraction, an object or an array is refused",
        *(
            step
            for key in ("null", "true", "1.5", "{}", "[]")
            for step in (line(spelled(key)), error(NO_ID, INVALID))
        ),
    ),
    must(
        RPC,
        "params that are an array or a string are refused with the id",
        *(
            step
            for params in ("[]", '"x"')
            for step in (
                line(f'{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{params}}}'),
                error(7, INVALID),
            )
        ),
    ),
    must(
        BASE,
        "A batch is refused with one error, not with an array",
        line(f"[{spelled()}]"),
        error(NO_ID, INVALID),
        line("[]"),
        error(NO_ID, INVALID),
        *ALIVE,
        eras=UNBATCHED,
    ),
    must(
        RPC,
        "A batch is answered with one array, its notifications with nothing",
        Say(
            [
                LIST.value,
                notify("notifications/x").value,
                plain("b", "ping").value,
                call(3).value,
            ]
        ),
        Hear([result(1), result("b"), result(3)]),
        eras=BATCHED,
    ),
    must(
        RPC,
        "A batch of notifications alone is answered with nothing",
        Say([notify("notifications/x").value, notify("notifications/y").value]),
        *ALIVE,
        eras=BATCHED,
    ),
    must(
        RPC,
        "An empty batch is one error, a batch of nonsense an array of errors",
        line("[]"),
        error(None, INVALID),
        line("[1]"),
        Hear([refusal(None, INVALID)]),
        line('[1,{},{"jsonrpc":"2.0","id":4,"method":"no"}]'),
        Hear([refusal(None, INVALID), refusal(None, INVALID), refusal(4, METHOD)]),
        *ALIVE,
        eras=BATCHED,
    ),
    robust(
        OURS,
        "A batch with a cancelled call is answered without it",
        Say([do(1, "hold", "a", token="t").value, plain(2, "ping").value], peer=True),
        progress("t", 0),
        cancel(1),
        Hear([result(2)]),
        eras=BATCHED,
        threads=True,
    ),
    must(
        LIFECYCLE,
        "initialize is refused inside a batch",
        Say([initialize(key=1).value]),
        Hear([refusal(1, INVALID)]),
        eras=BATCHED,
    ),
    must(
        RPC,
        "An unknown method is refused with the id",
        request("m", "no/such"),
        error("m", METHOD),
        request(8, ""),
        error(8, METHOD),
        *ALIVE,
    ),
    must(
        RPC,
        "Nothing is sent for a notification, be it unknown, malformed or a tools/call without id",
        notify("no/such"),
        line('{"jsonrpc":"2.0","method":"x","params":7}'),
        line('{"method":"x"}'),
        notify("tools/call", name=TOOL, arguments=GOOD),
        notify("tools/list"),
        *ALIVE,
    ),
    robust(
        RPC,
        "Nothing is sent for a response or an error from the client",
        line('{"jsonrpc":"2.0","id":1,"result":{}}'),
        line('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'),
        line('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'),
        *ALIVE,
    ),
    robust(
        RPC,
        "A key that stands twice makes one answer",
        line(spelled('91,"id":92')),
        Hear({"id": lambda key: key in (91, 92)}),
        *ALIVE,
    ),
    robust(
        RPC,
        "Numbers past every limit are answered",
        line(spelled("1", params=f',"a":1e999,"b":-0.0,"c":{10**28}')),
        listed(1),
        *ALIVE,
    ),
    must(
        RPC,
        "An error without an id has the id null",
        line("{"),
        error(None, PARSE),
        eras=("2024-11-05", "2025-03-26", "2025-06-18"),
    ),
    should(
        BASE,
        "An error without an id leaves the id out",
        line("{"),
        error(ABSENT, PARSE),
        eras=("2025-11-25", *STATELESS),
    ),
    must(
        RPC,
        "An id comes back with its type and value: empty, zero, negative, text that looks like a number",
        *(step for key in EDGE_IDS for step in (request(key, "tools/list"), listed(key))),
    ),
    robust(
        RPC,
        "An id comes back whole when it is larger than a float or a machine word can hold",
        *(step for key in HUGE_IDS for step in (request(key, "tools/list"), listed(key))),
    ),
    must(
        RPC,
        "An id may be used again after its answer",
        LIST,
        listed(),
        LIST,
        listed(),
        call(1),
        answer(1, isError=False),
        call(1),
        answer(1, isError=False),
    ),
    robust(
        OURS,
        "An id that is still in use is refused, and the call it belongs to goes on",
        do(1, "hold", "a", token="t"),
        progress("t", 0),
        do(1, "echo"),
        error(1, INVALID),
        do(2, "unlock", "a"),
        says(1, "passed a"),
        says(2, "opened a"),
        threads=True,
    ),
    robust(
        OURS,
        "A message of 1 MiB is served",
        request(1, "tools/list", _meta={"pad": "x" * MIB}),
        listed(),
    ),
    robust(
        OURS,
        "A message over 10 MiB is refused with its id, and the server goes on",
        line(spelled("7", params=f',"pad":"{"x" * 11 * MIB}"')),
        error(7, INVALID),
        *ALIVE,
    ),
    robust(
        OURS,
        "Arrays in 500 arrays are served, in 100,000 refused",
        line(spelled(params=f',"deep":{"[" * 500 + "]" * 500}')),
        listed(),
        line(spelled(params=f',"deep":{"[" * 100_000 + "]" * 100_000}')),
        error(NO_ID, PARSE),
        *ALIVE,
    ),
)

HANDSHAKES = (
    must(
        LIFECYCLE,
        "A revision that is spoken is agreed to",
        *(
            step
            for version in HANDSHAKE
            for step in (initialize(version), answer(1, protocolVersion=version, serverInfo=SERVER))
        ),
        eras=HANDSHAKE,
        fresh=True,
    ),
    should(
        LIFECYCLE,
        "Another revision, the stateless one too, is answered with the latest handshake",
        *(
            step
            for version in ("1900-01-01", "", STATELESS[0], "2026-12-31")
            for step in (initialize(version), answer(1, protocolVersion=HANDSHAKE[-1]))
        ),
        eras=HANDSHAKE,
        fresh=True,
    ),
    should(
        LIFECYCLE,
        "initialize without a protocol version is refused and may be repeated",
        plain(1, "initialize"),
        error(1, PARAMS),
        initialize(version=5),
        error(1, PARAMS),
        initialize(),
        answer(1, protocolVersion=HANDSHAKE[-1]),
        plain(2, "tools/list"),
        listed(2),
        eras=HANDSHAKE,
        fresh=True,
    ),
    must(
        "ping",
        "ping is answered before the handshake and after it",
        plain(1, "ping"),
        Hear({"id": 1, "result": lambda value: value == {}}),
        initialize(key=2),
        answer(2),
        plain(3, "ping"),
        Hear({"id": 3, "result": lambda value: value == {}}),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        OURS,
        "Other requests before the handshake are refused as lacking the stateless envelope",
        plain(1, "tools/list"),
        error(1, PARAMS),
        plain(2, "no/such"),
        error(2, PARAMS),
        plain(3, "tools/call", name=TOOL, arguments=GOOD),
        error(3, PARAMS),
        initialize(key=4),
        answer(4),
        plain(5, "tools/list"),
        listed(5),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        HOSTS,
        "The handshake and a request may come in one write",
        initialize(),
        notify("notifications/initialized"),
        plain(2, "tools/list"),
        answer(1),
        listed(2),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        HOSTS,
        "A client that never says initialized is served",
        initialize(),
        answer(1),
        plain(2, "tools/list"),
        listed(2),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        LIFECYCLE,
        "Capabilities and members that nobody knows are passed over",
        initialize(
            colour="red",
            capabilities={"sampling": {}, "roots": {"listChanged": True}, "odd": 1},
        ),
        answer(1),
        notify("notifications/initialized", odd=True),
        plain(2, "tools/list", odd=1),
        listed(2),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        OURS,
        "A second initialize is answered",
        initialize(key=1),
        answer(1),
        initialize("2025-03-26", key=2),
        answer(2, protocolVersion="2025-03-26"),
        eras=HANDSHAKE,
        fresh=True,
    ),
    must(
        TOOLS,
        "The tools capability is declared, and nothing else",
        initialize(),
        answer(1, capabilities=lambda value: value == {"tools": {}}),
        eras=HANDSHAKE,
        fresh=True,
    ),
    robust(
        OURS,
        "The instructions name the roots",
        initialize(),
        answer(1, instructions=lambda text: "roots: /" in text),
        eras=HANDSHAKE,
        fresh=True,
    ),
    should(
        LIFECYCLE,
        "Methods of capabilities that are not declared are not found",
        *(step for method in UNDECLARED for step in (request(1, method), error(1, METHOD))),
        eras=HANDSHAKE,
    ),
    must(
        "tasks",
        "A call that asks for a task is an ordinary call",
        call(1, task={"ttl": 60_000}),
        answer(1, isError=False, task=ABSENT),
        eras=TASKED,
    ),
    must(
        LIFECYCLE,
        "A client with every capability is sent no request and no log message",
        initialize(
            capabilities={"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
        ),
        answer(1),
        notify("notifications/initialized"),
        Say(call(2).value, bare=True),
        answer(2),
        eras=HANDSHAKE,
        fresh=True,
    ),
)

ONE_BY_ONE = (
    must(
        DISCOVER,
        "server/discover tells versions and capabilities",
        request("d", "server/discover"),
        answer(
            "d",
            supportedVersions=[*STATELESS, *HANDSHAKE],
            capabilities=lambda value: value == {"tools": {}},
            **CACHEABLE,
        ),
        eras=STATELESS,
    ),
    robust(
        OURS,
        "server/discover's instructions name the roots",
        request("d", "server/discover"),
        answer("d", instructions=lambda text: "roots: /" in text),
        eras=STATELESS,
    ),
    must(
        BASE,
        "Any request is served first, without a handshake",
        call(1),
        answer(1, isError=False),
        eras=STATELESS,
    ),
    must(
        BASE,
        "Nothing is inferred from earlier requests",
        LIST,
        listed(),
        plain(2, "tools/list"),
        error(2, PARAMS),
        plain(3, "tools/call", name=TOOL, arguments=GOOD),
        error(3, PARAMS),
        *ALIVE,
        eras=STATELESS,
    ),
    must(
        BASE,
        "A first request without _meta is refused for that, server/discover too",
        plain(1, "server/discover"),
        error(1, PARAMS),
        plain(2, "tools/list"),
        error(2, PARAMS),
        eras=STATELESS,
    ),
    must(
        BASE,
        "_meta without a version or without capabilities is refused, whatever the method",
        *(
            step
            for method in ("server/discover", "tools/list", "tools/call", "no/such")
            for meta in ({}, without(VERSION_KEY), without(CAPABILITIES_KEY))
            for step in (modern(1, method, meta), error(1, PARAMS))
        ),
        eras=STATELESS,
    ),
    must(
        BASE,
        "_meta, a version, capabilities or a client of the wrong type are refused",
        *(step for meta in BAD_METAS for step in (modern(1, "tools/list", meta), error(1, PARAMS))),
        eras=STATELESS,
    ),
    must(
        BASE,
        "The client may leave out who it is",
        modern(1, "tools/list", without(CLIENT_KEY)),
        listed(),
        eras=STATELESS,
    ),
    must(
        VERSIONING,
        "A version that is not spoken is refused with those that are",
        *(
            step
            for version in ("1900-01-01", "2025-11-25")
            for step in (
                modern(1, "tools/list", {**ENVELOPE, VERSION_KEY: version}),
                error(
                    1,
                    VERSION,
                    message="Unsupported protocol version",
                    data={"supported": is_full_of_spoken(version), "requested": version},
                ),
                *ALIVE,
            )
        ),
        eras=STATELESS,
    ),
    must(
        BASE,
        "Every result says that it is complete, and whose it is",
        request(1, "server/discover"),
        answer(1, **DRESSED),
        request(2, "tools/list"),
        answer(2, **DRESSED),
        call(3),
        answer(3, **DRESSED),
        request(4, "tools/call", name=TOOL, arguments=BAD),
        answer(4, isError=True, **DRESSED),
        eras=STATELESS,
    ),
    must(
        TOOLS,
        "tools/list tells how long it may be kept, tools/call does not",
        LIST,
        listed(1, **CACHEABLE),
        call(2),
        answer(2, ttlMs=ABSENT, cacheScope=ABSENT),
        eras=STATELESS,
    ),
    must(
        BASE,
        "Methods that were removed are not found",
        *(step for method in REMOVED for step in (request(1, method), error(1, METHOD))),
        eras=STATELESS,
    ),
    should(
        "logging",
        "A log level that does not exist is refused, the others are taken in silence",
        *(
            step
            for level in LEVELS
            for step in (modern(1, "tools/list", {**ENVELOPE, LEVEL_KEY: level}), listed())
        ),
        modern(1, "tools/list", {**ENVELOPE, LEVEL_KEY: "loud"}),
        error(1, PARAMS),
        modern(1, "tools/list", {**ENVELOPE, LEVEL_KEY: ["debug"]}),
        error(1, PARAMS),
        eras=STATELESS,
    ),
    must(
        LISTEN,
        "A subscription is acknowledged with what is honoured, which is nothing",
        request(77, "subscriptions/listen", notifications={"toolsListChanged": True}),
        acknowledged(77),
        request("77", "subscriptions/listen", notifications={}),
        acknowledged("77"),
        *ALIVE,
        eras=STATELESS,
    ),
    must(
        LISTEN,
        "A cancelled subscription ends silently, and its id is free again",
        request(77, "subscriptions/listen", notifications={}),
        acknowledged(77),
        cancel(77),
        request(77, "tools/list"),
        listed(77),
        eras=STATELESS,
    ),
    must(
        LISTEN,
        "A subscription without notifications is refused",
        request(1, "subscriptions/listen"),
        error(1, PARAMS),
        request(2, "subscriptions/listen", notifications=["toolsListChanged"]),
        error(2, PARAMS),
        eras=STATELESS,
    ),
    robust(
        VERSIONING,
        "After a refused probe the handshake works on the same process",
        modern(1, "server/discover", {**ENVELOPE, VERSION_KEY: "2099-01-01"}),
        error(1, VERSION),
        initialize(key=2),
        answer(2, protocolVersion=HANDSHAKE[-1], resultType=ABSENT),
        plain(3, "tools/list"),
        listed(3, resultType=ABSENT),
        eras=STATELESS,
    ),
    robust(
        OURS,
        "Both eras are served side by side on one process",
        LIST,
        listed(**DRESSED),
        initialize(key=2),
        answer(2, resultType=ABSENT),
        plain(3, "tools/list"),
        listed(3, resultType=ABSENT),
        call(4),
        answer(4, **DRESSED),
        plain(5, "ping"),
        answer(5, resultType=ABSENT),
        request(6, "ping"),
        error(6, METHOD),
        eras=STATELESS,
    ),
    robust(
        "multi round-trip requests",
        "Input that nobody asked for is passed over",
        call(1, inputResponses={"a": {}}, requestState="x"),
        answer(1, isError=False),
        eras=STATELESS,
    ),
)

CALLS = (
    must(
        TOOLS,
        "The list has sound names and JSON Schemas 2020-12 of type object",
        LIST,
        answer(
            1,
            tools=[{"name": is_plain_name, "inputSchema": is_sound_schema}],
            nextCursor=ABSENT,
        ),
    ),
    should(
        TOOLS,
        "The list is the same to the byte, whatever came before",
        request(0, "tools/list"),
        listed(0),
        call(1),
        answer(1),
        request("no", "such"),
        error("no", METHOD),
        request(2, "tools/list"),
        listed(2),
        alike=(0, 2),
    ),
    robust(
        OURS,
        "A tool has a title, a description and all four hints; every parameter is described",
        LIST,
        answer(1, tools=[{"title": bool, "description": bool, "annotations": is_annotated}]),
    ),
    must(
        TOOLS,
        "A declared output schema is kept to, beside the text",
        LIST,
        answer(1, tools=[{"outputSchema": is_sound_schema}]),
        call(2),
        answer(
            2,
            content=[{"type": "text"}],
            structuredContent=lambda value: isinstance(value, dict),
        ),
        request(3, "tools/call", name=TOOL, arguments=BAD),
        answer(3, isError=True, structuredContent=ABSENT),
        eras=("2025-06-18", "2025-11-25", *STATELESS),
        options=("--structured",),
    ),
    robust(
        HOSTS,
        "By default an answer is text, without structured content",
        LIST,
        answer(1, tools=[{"outputSchema": ABSENT}]),
        call(2),
        answer(2, content=[{"type": "text"}], structuredContent=ABSENT),
    ),
    must(
        TOOLS,
        "A cursor that was never given out is refused",
        *(
            step
            for cursor in ("x", "", 5, None)
            for step in (request(1, "tools/list", cursor=cursor), error(1, PARAMS))
        ),
    ),
    should(
        TOOLS,
        "A tool that does not exist is a protocol error",
        request(1, "tools/call", name="no_such", arguments={}),
        error(1, PARAMS, message="Unknown tool: no_such"),
        *ALIVE,
    ),
    must(
        TOOLS,
        "A call without a name, or with one that is no text, is a protocol error",
        request(1, "tools/call", arguments={}),
        error(1, PARAMS),
        request(2, "tools/call", name=5),
        error(2, PARAMS),
        request(3, "tools/call", name=None, arguments=GOOD),
        error(3, PARAMS),
    ),
    must(
        TOOLS,
        "Arguments that are no object are a protocol error",
        *(
            step
            for arguments in NO_OBJECTS
            for step in (request(1, "tools/call", name=TOOL, arguments=arguments), error(1, PARAMS))
        ),
    ),
    should(
        "SEP-1303",
        "Arguments that do not fit are an error result for the model",
        request(1, "tools/call", name=TOOL, arguments=BAD),
        says(1, "Error [INVALID_PARAMS]", failed=True),
        request(2, "tools/call", name=TOOL),
        says(2, "Error [INVALID_PARAMS]", "is missing", failed=True),
    ),
    robust(
        OURS,
        "An error result names every problem at once, and its code again in _meta",
        do(1, "dance", times="many", loud=7, wrods="x"),
        says(
            1,
            "'do' must be one of",
            "'times' must be an integer, not 'many'",
            "'loud' must be a boolean, not 7",
            "'wrods' is not a parameter, did you mean 'words'?",
            failed=True,
            _meta={"toolroll/code": "INVALID_PARAMS"},
        ),
    ),
    robust(
        HOSTS,
        "null is absent, numbers, booleans and lists may come as text",
        do(1, "echo", "a", times="3", loud="true", words=None, ratio="2.5"),
        says(1, "AAA"),
        do(2, "echo", "a", words="b"),
        says(2, "a b"),
        do(3, "echo", "a", words='["b", "c"]'),
        says(3, "a b c"),
    ),
    robust(
        HOSTS,
        "wait_for_previous and description, which hosts add, are dropped; others are named",
        do(1, "echo", "a", wait_for_previous=True, description="why"),
        answer(1, content=[{"text": "a"}], isError=False),
        do(2, "echo", "a", frobnicate=1),
        answer(2, content=[{"text": "a\n[Ignored: 'frobnicate']"}], isError=False),
    ),
    must(
        TOOLS,
        "A failure of the tool is an error result",
        do(1, "fail", "x"),
        says(1, "Error [NOT_FOUND]: 'x' is not here. Look elsewhere", failed=True),
        *ALIVE,
    ),
    robust(
        OURS,
        "A bug in a tool is INTERNAL_ERROR; its traceback is on stderr only",
        do(1, "bug", "hidden cause"),
        answer(
            1,
            content=[{"text": lambda text: "INTERNAL_ERROR" in text and "hidden" not in text}],
            isError=True,
        ),
        do(2, "leave"),
        says(2, "INTERNAL_ERROR", failed=True),
        *ALIVE,
        stderr="BugError: hidden cause",
    ),
    must(
        PROGRESSING,
        "No progress is sent without a token",
        do(1, "report", times=3),
        says(1, "3 steps"),
    ),
    must(
        PROGRESSING,
        "Progress keeps the token's type, always rises, and ends with the answer",
        *(
            step
            for token in ("", 0, "0", 7)
            for step in (
                do(1, "report", times=2, token=token),
                progress(token, 1, total=2),
                progress(token, 2, message="step 2"),
                says(1, "2 steps"),
            )
        ),
    ),
    must(
        CANCELLING,
        "A cancelled call stops its work and sends nothing more, no progress either",
        do(1, "hold", "a", token="t"),
        progress("t", 0),
        cancel(1),
        do(2, "hold", "stopped:a"),
        says(2, "passed stopped:a"),
        threads=True,
    ),
    must(
        CANCELLING,
        "A call that goes on after its cancellation sends nothing either",
        do(1, "deaf", "a", token="t"),
        progress("t", 0),
        cancel(1),
        do(2, "unlock", "a"),
        says(2, "opened"),
        *ALIVE,
        threads=True,
    ),
    must(
        CANCELLING,
        "Unknown, late and malformed cancellations are ignored silently",
        cancel(4711),
        cancel("x"),
        notify("notifications/cancelled"),
        notify("notifications/cancelled", requestId=[]),
        notify("notifications/cancelled", requestId=None),
        call(1),
        answer(1),
        cancel(1),
        *ALIVE,
    ),
    robust(
        CANCELLING,
        'The id "4711" is not 4711',
        do(4711, "hold", "a", token="t"),
        progress("t", 0),
        cancel("4711"),
        do(2, "unlock", "a"),
        says(4711, "passed a"),
        says(2, "opened a"),
        threads=True,
    ),
    must(
        "ping",
        "ping is answered while a call runs",
        do(1, "hold", "a", token="t"),
        progress("t", 0),
        request(2, "ping"),
        answer(2),
        do(3, "unlock", "a"),
        says(1, "passed a"),
        says(3, "opened a"),
        eras=HANDSHAKE,
        threads=True,
    ),
    robust(
        OURS,
        "Any request is answered while a call runs, calls too, in the order they finish",
        do(1, "hold", "a", token="t"),
        progress("t", 0),
        do(2, "echo", "b"),
        says(2, "b"),
        *ALIVE,
        do(3, "unlock", "a"),
        says(1, "passed a"),
        says(3, "opened a"),
        threads=True,
    ),
    robust(
        OURS,
        "Eight calls run side by side, further ones wait, requests are answered meanwhile",
        *(do(key, "hold", "a", token=key) for key in range(8)),
        *(progress(key, 0) for key in range(8)),
        do(8, "echo", "late"),
        *ALIVE,
        cancel(0),
        says(8, "late"),
        do(9, "unlock", "a"),
        says(9, "opened"),
        *(says(key, "passed a") for key in range(1, 8)),
        threads=True,
    ),
)

ENDINGS = (
    should(
        STDIO,
        "The end of input ends the process, from the start too",
        fresh=True,
    ),
    should(
        STDIO,
        "The end of input ends an idle process",
        *ALIVE,
    ),
    should(
        LISTEN,
        "The end of input ends a process with a subscription, silently",
        request(77, "subscriptions/listen", notifications={"toolsListChanged": True}),
        acknowledged(77),
        eras=STATELESS,
    ),
    robust(
        OURS,
        "The end of input ends a call that goes on, after a grace",
        do(1, "hold", "a", token="t"),
        progress("t", 0),
        eras=("2025-11-25", *STATELESS),
        threads=True,
    ),
    robust(
        HOSTS,
        "Requests read before the end of input are answered",
        LIST,
        *(call(key) for key in range(2, 12)),
        End(),
        listed(),
        *(answer(key, isError=False) for key in range(2, 12)),
    ),
    robust(
        STDIO,
        "Half a block at the end of input is dropped",
        *ALIVE,
        line("Content-Length: 100\r\n\r\n{", end=""),
    ),
    robust(
        STDIO,
        "Half a line at the end of input is a parse error",
        *ALIVE,
        line('{"jsonrpc":"2.0","id":1,', end=""),
        End(),
        error(NO_ID, PARSE),
    ),
    robust(
        HOSTS,
        "TERM ends an idle process",
        *ALIVE,
        end="TERM",
    ),
    robust(
        HOSTS,
        "TERM ends a busy process",
        do(1, "deaf", "a", token="t"),
        progress("t", 0),
        threads=True,
        end="TERM",
    ),
    robust(
        HOSTS,
        "INT ends an idle process",
        *ALIVE,
        end="INT",
    ),
    robust(
        HOSTS,
        "INT ends a busy process",
        do(1, "deaf", "a", token="t"),
        progress("t", 0),
        threads=True,
        end="INT",
    ),
    robust(
        STDIO,
        "A client that reads no more ends the process",
        *ALIVE,
        end="deaf",
    ),
)

STATEMENT: dict[str, tuple[Row, ...]] = {
    "Wire": WIRE,
    "JSON-RPC": JSON_RPC,
    "Handshake (2024-11-05 to 2025-11-25)": HANDSHAKES,
    "Stateless (2026-07-28)": ONE_BY_ONE,
    "Tools": CALLS,
    "End of the process": ENDINGS,
}
