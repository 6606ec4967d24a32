"""One command in a shell, from its first byte to its end, whatever that end is.

Knows nothing of sessions and of how an answer looks.
"""

import os
from signal import SIGINT, SIGKILL, SIGTERM
from time import monotonic

from toolroll_bash.shell import PIPE_BYTES, drain, unread
from toolroll_bash.tree import Mark, stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolroll.call import Call
    from toolroll_bash.output import Output
    from toolroll_bash.shell import Order, Shell

DONE, TIMEOUT, CANCELLED, ENDED, STUCK = "done", "timeout", "cancelled", "ended", "stuck"

PATIENT = ((SIGINT, 0.7), (SIGTERM, 0.8), (SIGKILL, 1.0))
PROMPT = ((SIGINT, 0.2), (SIGTERM, 0.1), (SIGKILL, 0.1))
"""What is sent and how long it may take; a cancelled call has half a second in all."""

END_S = 2.0
LOOK_S, NUDGE_S = 0.02, 0.05
IDLE_S, ANSWER_S = 0.01, 0.2
PROGRESS_S = 3.0


class Run:
    """A command that bash was told of; `status`, `flags` ($-) and `job` ($!) are what it reported.

    `whole` is True when the command came to its end.  `words` is what bash said where it could not
    parse the command: then nothing of it has run.
    """

    def __init__(
        self, shell: "Shell", order: "Order", output: "Output", call: "Call", limit_s: float
    ) -> None:
        self.shell = shell
        self.order = order
        self.output = output
        self.call = call
        self.limit_s = limit_s
        self.began = monotonic()
        self.mark = Mark()
        self.status: int | None = None
        self.flags = ""
        self.job = 0
        self.words = ""
        self.whole = False
        self._half = b""
        self._report_at = self.began + PROGRESS_S
        self._nudge_at = self.began

    @property
    def over(self) -> bool:
        """True when there is nothing more to wait for."""
        return self.status is not None or self.shell.ended is not None

    @property
    def taken_s(self) -> float:
        """Seconds since it began."""
        return monotonic() - self.began

    def finish(self, lines: bytes) -> str:
        """How it ended: DONE, TIMEOUT, CANCELLED, ENDED (the shell did) or STUCK (it had to be)."""
        drain(self.shell.status)  # what an earlier command reported twice
        self.shell.send(lines)
        fate = self._await()
        if fate in (TIMEOUT, CANCELLED):
            self._stop(PATIENT if fate == TIMEOUT else PROMPT)
        if fate == STUCK or not self.over:
            self.shell.kill()
            self._until(monotonic() + END_S)
            if fate in (TIMEOUT, CANCELLED):  # bash may have started one more before it died
                stop(self.shell.below(self.mark), SIGKILL)
        for piece in drain(self.shell.output):
            self.output.add(piece)
        self.output.end()
        return fate

    # -- waiting ---------------------------------------------------------------------------------

    def _await(self) -> str:
        """Return when it is over, its time is up, the host cancelled it, or bash does not answer.

        A bash that waits for a line without having reported has dropped the command on its way; it is
        asked once more, and if it says nothing then either, it cannot.
        """
        deadline = self.began + self.limit_s
        look_at, pause_s = self.began + IDLE_S, IDLE_S
        asked = False
        while not self.over:
            now = monotonic()
            if self.call.cancelled:
                return CANCELLED
            if now >= deadline:
                return TIMEOUT
            if now >= look_at:
                idles = self.shell.idles()
                if idles and asked:
                    return STUCK
                if idles:
                    self.shell.send(self.order.again())
                pause_s = ANSWER_S if idles else min(2 * pause_s, 1.0)
                asked, look_at = idles, now + pause_s
            self._tell(now)
            self._turn(min(deadline, look_at, self._report_at) - now)
        return DONE if self.status is not None else ENDED

    def _until(self, deadline: float) -> None:
        while not self.over and (left_s := deadline - monotonic()) > 0:
            self._turn(left_s)

    def _turn(self, timeout_s: float) -> None:
        """Take in what comes within that time."""
        for fd in self.shell.wait(timeout_s):
            if fd == self.shell.output:
                self._hear(fd)
            elif fd == self.shell.status:
                self._note(b"".join(drain(fd)))
            elif fd == self.shell.terminal:
                self.shell.listen()
            else:
                drain(fd)  # the host's cancel has woken us

    def _hear(self, fd: int) -> None:
        try:
            self.output.add(os.read(fd, PIPE_BYTES))
        except BlockingIOError:  # whoever drained it meanwhile
            return

    def _note(self, data: bytes) -> None:
        """Read the status FIFO: reports by number, older ones that came twice, words of the parser."""
        *lines, self._half = (self._half + data).split(b"\n")
        number = b"%d " % self.order.number
        for line in lines:
            if line.startswith(number) and self.status is None:
                _, status, flags, job, *again = line.decode("ascii", "replace").split()
                self.status, self.flags, self.job = int(status), flags, int(job)
                self.whole = not again
            elif line.startswith(b"bash: ") and self.status is None:
                self.words += line.decode("utf-8", "replace") + "\n"

    def _tell(self, now: float) -> None:
        if now < self._report_at:
            return
        self._report_at = now + PROGRESS_S
        if self.call.wants_progress:
            line = self.output.last_line(lambda text: self.call.guard.clean(text).text)
            words = f"{now - self.began:.0f} s: {line}".removesuffix(": ")
            self.call.progress(round(now - self.began, 1), None, words)

    # -- stopping --------------------------------------------------------------------------------

    def _stop(self, stages: "Sequence[tuple[int, float]]") -> None:
        """End the command with all that it started; bash itself stays if it lets go."""
        for number, patience_s in stages:
            told: set[int] = set()
            deadline = monotonic() + patience_s
            while monotonic() < deadline:
                left = set(self.shell.below(self.mark))
                if self.over and not left:
                    return
                stop(left - told, number)  # also what has been started since
                told = set() if number == SIGKILL else told | left
                self._nudge()
                self._turn(LOOK_S)

    def _nudge(self) -> None:
        """Interrupt bash, time and again: it ignores an INT when a child of its own ends otherwise."""
        now = monotonic()
        if not self.over and now >= self._nudge_at:
            self._nudge_at = now + NUDGE_S
            self.shell.nudge()
            if not unread(self.shell.source):
                self.shell.send(self.order.again())
