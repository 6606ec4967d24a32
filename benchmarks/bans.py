"""What each ban mode of Bash costs: a small command, and 1,000 starts of a program."""

from benchmarks.bash import ROUNDS, Peer
from benchmarks.measure import Section, environment, interleave

NAMES = {
    "nothing": "nothing banned",
    "text": "`--ban-mode text`",
    "shims": "`--ban-mode shims`",
    "kernel": "`--ban-mode kernel`",
}


def section() -> Section:
    """All in processes of one environment, taking turns."""
    python = environment("bans", "pexpect==4.9.0") / "python"
    peers = {name: Peer(python, name) for name in NAMES}
    small = interleave({name: peer.small_ms for name, peer in peers.items()}, ROUNDS)
    starts = interleave({name: peer.starts_s for name, peer in peers.items()}, ROUNDS)
    for peer in peers.values():
        peer.end()
    rows = [
        [
            NAMES[name],
            f"{small[name]:.2f}",
            f"{starts[name] * 1000:.0f}",
            f"{starts[name] / starts['nothing']:.2f}",
        ]
        for name in NAMES
    ]
    return Section(
        "Bash: what a ban mode costs",
        ["mode", "`true`, p50 ms", "1,000 starts of `/bin/true`, ms", "x nothing banned"],
        rows,
        "In the caller's own process, so without any wire. In kernel mode each start of a program waits for an "
        "answer; in shims mode each command of the shell is looked at by the shell itself.",
    )
