"""What the tests of several tools share."""

from collections.abc import Callable, Iterator

import pytest

from tests.tools.model_server import Act, ModelServer


@pytest.fixture
def model() -> Iterator[Callable[..., ModelServer]]:
    """`model(act, ...)`: a server that plays these acts."""
    servers: list[ModelServer] = []

    def start(*script: Act) -> ModelServer:
        servers.append(ModelServer(script).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()
