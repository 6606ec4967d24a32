"""The two ways a call can fail, by whose fault it is; knows nothing of the wire's bytes.

`ToolError` is for the model: it becomes an error *result* that the model reads and acts on
(SEP-1303; several hosts kill the agent or drop the message on a JSON-RPC error).
`RpcError` is for the host: the request itself is refused.  Any other exception is a bug.
"""


class ErrorCode:
    """Codes of error results, stable for hosts that read `_meta["toolroll/code"]`."""

    INVALID_PARAMS = "INVALID_PARAMS"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    OUTSIDE_ROOTS = "OUTSIDE_ROOTS"
    NOT_A_FILE = "NOT_A_FILE"
    NOT_A_DIRECTORY = "NOT_A_DIRECTORY"
    BINARY_FILE = "BINARY_FILE"
    TOO_LARGE = "TOO_LARGE"
    NO_MATCH = "NO_MATCH"
    MULTIPLE_MATCHES = "MULTIPLE_MATCHES"
    CONFLICT = "CONFLICT"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    BANNED_COMMAND = "BANNED_COMMAND"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    RATE_LIMITED = "RATE_LIMITED"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class ToolError(Exception):
    """A failure the model can act on: `message` says what, the quoted value, why; `hint` the next step."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The message and the hint as one text, each a sentence."""
        return f"{sentence(self.message)} {sentence(self.hint)}" if self.hint else self.message


class RpcCode:
    """JSON-RPC 2.0 section 5.1, and the one code of its own that MCP 2026-07-28 needs here."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    UNSUPPORTED_PROTOCOL_VERSION = -32022


class RpcError(Exception):
    """A request that is refused before any tool runs; `data` is the JSON value of `error.data`."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def sentence(text: str) -> str:
    """`text` closed by a full stop, unless it ends in a mark of its own or in an excerpt of a file."""
    return text if text.endswith((".", "!", "?", ":")) or "\n" in text else text + "."
