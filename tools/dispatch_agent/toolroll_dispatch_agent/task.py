"""One task from its prompt to the answer: with a model, or by plain lookup where none may be asked."""

import os
from time import monotonic

from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.paths import Roots, show
from toolroll.tool import Answer
from toolroll_dispatch_agent import lookup, providers
from toolroll_dispatch_agent.commands import denied
from toolroll_dispatch_agent.instructions import SYSTEM
from toolroll_dispatch_agent.providers import NoModelError
from toolroll_dispatch_agent.report import Report, trace
from toolroll_dispatch_agent.servers import Tools
from toolroll_dispatch_agent.stops import Finished, Limits, ModelFailed
from toolroll_dispatch_agent.transcript import Transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from toolroll.call import Call
    from toolroll_dispatch_agent.loop import Agent
    from toolroll_dispatch_agent.providers import Choice
    from toolroll_dispatch_agent.stops import Stop

    Json = Any

STEP_CHARS = 200
"""Longest text of one step's progress."""

RUNNING = providers.RUNNING
"""The tools of all tasks that are being worked on, too: what the server's end must end."""


class Task:
    """A task in the directory `root`, as long as it is worked on."""

    def __init__(
        self, prompt: str, root: str, call: "Call", key: str, result_chars: int = 0
    ) -> None:
        """`key` is what a provider is asked with: it is hidden like the values of secret variables.

        `result_chars` stands in place of what a model gets to see of a result.  Raises: ToolError.
        """
        self.began = monotonic()
        self.root = root
        self.call = call
        self.guard = guard_for(call, key)
        self.prompt = self.guard.clean(prompt).text
        self.steps = 0
        self.transcript = Transcript(call.options.get("transcript") or "", self.guard)
        limits = {"result-chars": result_chars} if result_chars else {}
        try:
            self.tools = Tools(root, {**call.options, **limits}, call, self.guard)
        except ValueError as problem:  # --mcp-servers has changed since the start
            raise ToolError(ErrorCode.EXECUTION_ERROR, str(problem)) from None

    def __enter__(self) -> "Task":
        RUNNING.add(self.tools)
        self.transcript.write("task", {"prompt": self.prompt, "path": show(self.root)})
        return self

    def __exit__(self, *_: object) -> None:
        self.call.on_cancel(None)
        self.tools.close()
        self.transcript.close()
        RUNNING.discard(self.tools)

    def with_model(self, choice: "Choice") -> Answer:
        """The answer of an agent that asks the chosen model.

        Raises: NoModelError when it never answered; ToolError.
        """
        from asyncio import CancelledError

        from toolroll_dispatch_agent.loop import Agent
        from toolroll_dispatch_agent.models import Model

        limits = Limits(self.call.options)
        system = SYSTEM.format(root=show(self.root), turns=limits.turns, calls=limits.calls)

        def clean(text: str) -> str:
            return self.guard.clean(text).text

        with Model(choice, on_retry=self.step, clean=clean) as model:

            def stop_all() -> None:
                model.stop()
                self.tools.stop()

            self.call.on_cancel(stop_all)
            agent = Agent(
                model, self.tools, limits, system, on_step=self.step, on_message=self.message
            )
            try:
                stop, text = agent.run(self.prompt)
            except CancelledError:
                self.call.check()
                raise
        if isinstance(stop, ModelFailed) and not agent.turns:
            raise NoModelError(f"No model answered. {stop}")
        return self._reported(agent, stop, text)

    def looked_up(self, why: str, status: str) -> Answer:
        """The answer of the half that needs no model, and why it is that.

        Raises: ToolError.
        """
        self.call.on_cancel(self.tools.stop)
        found = lookup.findings(self.prompt, self.tools, self.call)
        report = self._checked(found.text, found.places)
        report.text += f"\n\n{self.guard.clean(why).text}"
        return self._answer(report, status, {"turns": 0, "calls": found.calls})

    def step(self, text: str) -> None:
        """Tell the host and the transcript what is being done."""
        text = self.guard.clean(text).text[:STEP_CHARS]
        self.steps += 1
        self.call.check()
        self.call.progress(self.steps, None, text)
        self.transcript.write("step", text)

    def message(self, message: "dict[str, Json]") -> None:
        """Take note of a message."""
        self.transcript.write("message", message)

    def _reported(self, agent: "Agent", stop: "Stop", text: str) -> Answer:
        """The answer with a model's report, or with the trace where it has written none."""
        if not text.strip():
            done = trace(agent.messages)
            text = f"The model wrote no report. {stop} This is what was called and found:\n\n{done}"
        elif not isinstance(stop, Finished):
            text = f"{text.rstrip()}\n\nThe work was stopped early. {stop}"
        data = {"turns": agent.turns, "calls": agent.calls, "model": agent.model.label}
        if agent.tokens is not None:
            data["tokens"] = agent.tokens
        return self._answer(self._checked(self.guard.clean(text).text), stop.status, data)

    def _checked(self, text: str, places: "Collection[tuple[str, int]] | None" = None) -> Report:
        """The report with its places looked up, where a tool of the task would find them."""
        closed = denied(self.call.options.get("deny", ()), self.call.roots.folders)
        return Report(text, Roots([self.root], list(closed)), places)

    def _answer(self, report: Report, status: str, data: "dict[str, Json]") -> Answer:
        """The answer with its last line."""
        problems = "".join(f"\n\nNot available: {one}" for one in self.tools.problems)
        tokens = f"{data['tokens']:,} tokens" if "tokens" in data else "tokens unknown"
        is_first = self.root == self.call.roots.first
        facts = [
            f"status: {status}",
            *([] if is_first else [f"paths are relative to {show(self.root)}"]),
            report.note,
            _counted(data["turns"], "turn"),
            _counted(data["calls"], "call"),
            *([tokens] if data["turns"] else []),
            f"model {data.get('model', 'none')}",
            f"{monotonic() - self.began:.1f} s",
        ]
        citations = [one.data for one in report.citations]
        fields = {"status": status, "citations": citations, **data}
        self.transcript.write("end", {**fields, "text": report.text})
        return Answer(report.text + problems, facts, fields)


def answer(prompt: str, path: str, call: "Call") -> Answer:
    """The answer to a task in the directory `path`.

    Raises: ToolError.
    """
    with call.roots.open_directory(path) as opened:
        root = opened.path
    status, key = "no_model", ""
    try:
        choice = providers.choose(call.options, os.environ, call.check)
        providers.library()
        status, key = ModelFailed.status, choice.key
        with Task(prompt, root, call, key) as task:
            return task.with_model(choice)
    except NoModelError as problem:
        why = str(problem)
    with Task(prompt, root, call, key, lookup.RESULT_CHARS) as task:
        return task.looked_up(why, status)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def guard_for(call: "Call", key: str) -> Guard:
    """Masks by the whole environment, whatever --no-redact says: what it lets through goes to others."""
    secrets = [*call.options.get("secret", ()), providers.KEY]
    return Guard({**os.environ, providers.KEY: key or os.environ.get(providers.KEY, "")}, secrets)
