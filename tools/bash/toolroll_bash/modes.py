"""Which of the layers can be in force here, found out by trying; knows no command and no session."""

import os

from toolroll_bash import kernel, network, shims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolroll_bash.policy import Policy

    Json = Any

AUTO, KERNEL, SHIMS, TEXT = "auto", "kernel", "shims", "text"

SUDO = "sudo works here without a password, and would not in kernel mode"
SUDO_S = 3.0


class Force:
    """The mode that stands behind the text of commands, and why it is not the wanted one.

    `network` is the way to be without one, else empty.  With `problem` there is no session.
    """

    __slots__ = ("mode", "network", "problem", "why")

    def __init__(self, mode: str, why: str = "", way: str = "", problem: str = "") -> None:
        self.mode = mode
        self.why = why
        self.network = way
        self.problem = problem

    @property
    def words(self) -> str:
        """The mode, with the reason when it is not the wanted one."""
        return f"{self.mode}, as {self.why}" if self.why else self.mode

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        return f"ban mode {self.words}" + (f"; no network ({self.network})" if self.network else "")


class Rules:
    """What all that a session starts is held to: `text` is for its launcher, `told` for its shell."""

    __slots__ = ("_force", "_policy")

    def __init__(self, policy: "Policy", force: Force) -> None:
        self._policy = policy
        self._force = force

    @property
    def text(self) -> str:
        """As JSON: mode, banned, only, network."""
        from toolroll.jsontext import dumps

        only = self._policy.only
        return dumps(
            {
                "mode": self._force.mode,
                "banned": sorted(self._policy.banned),
                "only": None if only is None else sorted(only),
                "network": self._force.network,
            }
        ).decode()

    def told(self, folder: str) -> tuple[str, str]:
        """What bash is to run at its start and after each call; `folder` is the session's own."""
        first, after = shims.builtins(self._policy)
        if self._force.mode == SHIMS:
            more = shims.shell(
                self._policy, os.path.join(folder, SHIMS), os.path.join(folder, "stopped")
            )
            first, after = first + more[0], after + more[1]
        return first, after


def in_force(options: "Mapping[str, Json]", policy: "Policy | None" = None) -> Force:
    """What a command line asks for as far as it can be; where nothing is banned, nothing is tried."""
    wanted = options.get("ban-mode") or AUTO
    if policy is not None and policy.only is None and not policy.banned:
        wanted = TEXT
    return find(wanted, bool(options.get("no-network")))


def find(wanted: str, no_network: bool) -> Force:
    """What can be in force; takes some milliseconds, and one sudo where that is installed."""
    way, why = network.choose() if no_network else ("", "")
    if no_network and not way:
        return Force(wanted, problem=f"--no-network is not possible here ({why})")
    if wanted in (SHIMS, TEXT):
        return Force(wanted, "", way)
    if wanted == AUTO and not no_network and _sudo_works():
        return Force(SHIMS, SUDO)
    why = kernel.problem()
    if not why:
        return Force(KERNEL, "", way)
    why = f"kernel mode is not possible here ({why})"
    if wanted == KERNEL:
        return Force(wanted, problem=f"--ban-mode kernel: {why}")
    return Force(SHIMS, why, way)


def _sudo_works() -> bool:
    """True for an ordinary user who becomes root without being asked."""
    from shutil import which

    if os.geteuid() == 0 or not which("sudo"):
        return False
    from subprocess import DEVNULL, TimeoutExpired, run

    try:
        done = run(
            ["sudo", "-n", "true"],
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            timeout=SUDO_S,
            check=False,
        )
    except TimeoutExpired:
        return False
    return done.returncode == 0
