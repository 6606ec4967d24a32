"""The policy on the text of commands: what is refused, what is not, and what the options change."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.test_bash_reader import NOISE, mutations
from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll_bash.policy import BANNED, Policy
from toolroll_bash.reader import DEPTH
from toolroll_bash.tool import bash, close, start
from toolroll_bash.wrappers import HANDLERS, LEVELS, WRAPPERS, runs

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pty.fork, 3.12

Start = Callable[..., Any]


def refusal(command: str, policy: Policy | None = None) -> str:
    """The words of a refusal, empty when the text passes."""
    try:
        (policy or Policy.of({})).inspect(command)
    except ToolError as problem:
        return str(problem) if problem.code == ErrorCode.BANNED_COMMAND else problem.code
    return ""


REFUSED = r"""
curl x
x=1; curl y
\curl
'curl'
c""url
$'\x63url'
/usr/bin/curl
./curl
cu{r,}l {curl,-s}
{curl,-s}
env curl
env -S 'A=1 curl x'
env -iS'curl x'
env - curl
command curl
command -p curl
exec -a foo curl
exec curl
builtin command curl
nice -n 5 curl
nice -5 curl
nice --adjustment=5 curl
nohup curl &
timeout 5 curl
timeout -k 5 -s KILL 10 curl
timeout --signal KILL 5s curl
time curl
time -p curl
/usr/bin/time -f %e curl
/usr/bin/time --format=%e curl
xargs curl
echo x | xargs -n1 -P 4 -I{} curl {}
find . -name x -exec curl {} \;
find . -ok wget {} +
find . -exec sh -c 'curl "$1"' _ {} \;
bash -c 'curl x'
bash -lc "curl $x"
bash -euo pipefail -c 'curl'
bash --norc -c curl
sh -c "eval 'wget x'"
eval curl x
eval "cu""rl x"
eval 'x=1; curl'
trap 'curl x' EXIT
trap -- curl EXIT
coproc curl x
coproc foo { curl x; }
sudo curl
sudo -u root -E A=b curl
sudo -- curl
doas -u x curl
busybox wget x
toybox nc
busybox sh -c 'wget x'
watch -n 1 curl x
watch 'ps; curl x'
parallel curl ::: a b
parallel -j4 'curl {}' ::: a
parallel ::: 'curl a' 'wget b'
setsid curl
stdbuf -oL curl
ionice -c 3 curl
chroot / curl
unshare -n curl
script -c 'curl x' /dev/null
script -qc 'curl x' /dev/null
script -q /dev/null curl x
su -c 'curl x'
su root -c curl
su - root --command='curl x'
flock /tmp/x curl
flock -n /tmp/x -c 'curl x'
strace -f -o out curl
/lib64/ld-linux-x86-64.so.2 /usr/bin/curl
/lib/ld-musl-x86_64.so.1 --library-path /x /usr/bin/curl
sh <<< 'curl x'
source /dev/stdin <<< 'curl x'
alias x=y
alias
enable alias
hash -p /usr/bin/curl foo
echo $(curl x)
echo "`curl x`"
echo ${x:-$(curl)}
cat <(curl x)
tee >(nc h 1)
x=$(curl)
x=(a $(curl))
[[ $(curl) ]]
(( $(curl) ))
for i in $(curl); do :; done
case $(curl) in a) ;; esac
case x in x) curl;; esac
if curl; then :; fi
while ! curl; do :; done
{ curl; }
(curl)
((a); (curl))
a && curl
a || curl
a | curl
a & curl
a |& curl
!(curl)
! curl
f() { curl; }; f
function f { curl; }
x=1 curl
>out curl
2>&1 curl
{fd}>x curl
a[1 + 2]=3 curl
a$(echo b; (curl))
"/usr/bin/curl"
~/bin/curl
$HOME/bin/curl
"$x"/curl
/usr/b?n/curl
select x in a; do curl; done
for ((i=0;i<3;i++)); do curl; done
google-chrome x
firefox-esr
http GET x
netcat x
xvfb-run -a google-chrome
curl() { command curl "$@"; }
curl() { :; }; unset -f curl; curl
time -p -- curl
nsenter -t 1 curl
pkexec curl
bash -O extglob -c curl
$'c\165rl'
cu'r'l
\c\u\r\l
c$''url
c$""url
{/usr/bin/curl,x}
busybox xargs curl
find . -exec env curl \;
env env env env curl
runuser -u x -- curl
runuser x -c curl
curl.exe x
exec 3<>x; curl
: ; { : ; curl ; } 2>/dev/null
echo | (read; curl)
[ x ] && curl
test x&&curl
until curl; do :; done
echo $[ $(curl) ]
echo "${x:-"$(curl)"}"
timeout "$T" curl
sudo -i curl
bash -c -- 'curl x'
zsh -c curl
ssh-keygen; curl
""".strip().splitlines()
REFUSED_LINES = [
    "bash <<EOF\ncurl x\nEOF",
    "bash -s <<'EOF'\ncurl x\nEOF",
    "cat <<EOF\n$(curl x)\nEOF",
    "cat <<EOF\n`curl x`\nEOF",
    "$\\\\\n(curl)",
    "echo a; # comment\ncurl",
    "cat <<A; curl\nx\nA",
    "cat <<A\nx\nA\ncurl",
    "if true; then\n  curl\nfi",
    "true\n\n\ncurl",
    "cat << A > x\n$(wget)\nA",
    "cat <<-A\n\tx\n\tA\ncurl",
    'printf %s "$(\ncurl\n)"',
    "curl\\\n x",
    "cu\\\nrl x",
    "c\\\nu\\\nr\\\nl",
]
INNOCENT = r"""
grep -rn curl src/
git commit -m 'use wget'
cat docs/links.md
npm run links
nc=5; echo $nc
for nc in a; do echo $nc; done
read nc
# curl x
echo a # curl
python -c "print('wget')"
ls /opt/chrome/x
command -v curl
command -V curl
which curl
type curl
type -P curl
hash curl
man curl
apt install curl
if ! command -v curl >/dev/null; then echo no; fi
case x in curl) echo;; wget|nc) ;; esac
links=(a b); echo ${links[@]}
declare -A chrome=([firefox]=1)
((nc++))
let nc=1
nc=$((nc + 1))
[[ curl == wget ]]
[[ $x =~ (curl|wget) ]]
[ curl = x ]
echo curl | wc
echo '$(curl x)'
echo "\$(curl x)"
echo \`curl\`
xargs grep curl
xargs -a curl rm
find . -name curl
find . -exec grep curl {} +
sudo -l curl
sudo -u nc id
bash -c 'echo $0' curl
bash curl
timeout 5 echo curl
exec -a curl sleep 1
env nc=5 id
env -u curl id
trap - EXIT
trap curl
trap '' INT
awk '/wget/{print}'
sed -n '/curl/p'
pkill firefox
kill $(pgrep chrome)
dpkg -L curl
docker run curlimages/curl x
ssh host 'curl x'
brew install wget
strace -o curl ls
watch 'ps aux | grep curl'
parallel echo ::: curl wget
unalias -a
curl() { echo mock; }; curl x
function wget { :; }
CURL=/usr/bin/curl make
export CURL=curl
echo {curl,wget}
echo a{curl,wget}
cp x ./curl
ls > curl
cat < curl
echo 2>curl
enable -n alias
make curl
git config alias.co checkout
git alias
sh -n x
time echo curl
/usr/lib/apt/methods/http
select chrome in a b; do echo $chrome; done
function_links() { :; }
tar czf chrome.tgz chrome
a=curl
echo $curl ${wget}
x[curl]=1
x=([curl]=1 wget)
su nc -c id
watch -n 1 ls
jq '.curl | .wget'
pip install httpie
cargo install xh
systemctl status telnet
ls safari lynx links
cd links && ls
test -x /usr/bin/curl
./configure --with-curl
./curl-config --x
curl-config
wget2 x
""".strip().splitlines()
INNOCENT_LINES = [
    "cat <<EOF\ncurl x\nEOF",
    "cat > x.sh <<'EOF'\n$(curl x)\nEOF",
    "cat <<curl\nx\ncurl",
    "cat <<'A' <<B\ncurl\nA\nwget\nB",
    "cat <<A\n$x curl\nA",
    "printf '%s\\n' curl wget",
    'echo "it\'s\ncurl"',
    "#!/bin/sh\n# curl\n",
    "python3 - <<'E'\nimport os\nos.curl\nE\n",
    "bash <<'E'\necho curl\n# wget\nE\n",
    "git log --format='%an\ncurl'",
    "sed -e '\ncurl\n'",
    "x='\ncurl\n'; echo \"$x\"",
    "curl() {\n  echo mock\n}\ncurl x",
]


@pytest.mark.parametrize("command", [*REFUSED, *REFUSED_LINES])
def test_what_surely_runs_a_banned_program_is_refused(command: str) -> None:
    assert "may not be run here" in refusal(command)


@pytest.mark.parametrize("command", [*INNOCENT, *INNOCENT_LINES])
def test_what_only_mentions_one_is_not(command: str) -> None:
    assert refusal(command) == ""


@pytest.mark.parametrize("name", BANNED)
def test_every_name_of_the_list_is_refused(name: str) -> None:
    assert f"'{name}' (in `x; {name} …`)" in refusal(f"x; {name} y")
    assert refusal(f"echo {name} | grep {name} # {name}") == ""


LEFT = [
    "$x y",
    "c$x y",
    "${curl}",
    "$(echo curl) x",
    "cu?l",
    "/usr/bin/c*",
    "{a..c}url",
    'eval "$x"',
    "$x curl",
]
LEFT += [
    'bash -c "$x curl"',
    "bash -c $(cat x)",
    "echo 'curl x' | sh",
    ". ./x.sh",
    "python3 -c 'curl'",
    "`x` curl",
]


@pytest.mark.parametrize("command", LEFT)
def test_what_cannot_be_known_is_left_to_the_next_layer(command: str) -> None:
    assert refusal(command) == ""


# -- wrappers ------------------------------------------------------------------------------------------------

PLAIN = sorted(name for name, wrapper in WRAPPERS.items() if not wrapper.operands)
OPERAND = sorted(name for name, wrapper in WRAPPERS.items() if wrapper.operands)


@pytest.mark.parametrize("name", PLAIN)
def test_a_wrapper_leads_to_its_program(name: str) -> None:
    assert refusal(f"\\{name} curl x")
    assert refusal(f"/usr/bin/{name} -- curl x")
    assert refusal(f"\\{name} echo curl") == ""


@pytest.mark.parametrize("name", OPERAND)
def test_a_wrapper_takes_its_operand_first(name: str) -> None:
    assert refusal(f"{name} 1 curl x")
    assert refusal(f"{name} curl echo x") == ""


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_the_value_of_a_wrappers_option_is_not_its_program(name: str) -> None:
    wrapper = WRAPPERS[name]
    operands = "1 " * wrapper.operands
    given = [f"-{one}" for one in wrapper.values] + [f"--{one}" for one in wrapper.longs]
    for option in given:
        if option.lstrip("-") not in wrapper.ends:
            assert refusal(f"\\{name} {option} curl {operands}echo x") == ""
            assert refusal(f"\\{name} {option} x {operands}curl x")
    for end in wrapper.ends:
        assert refusal(f"\\{name} {'-' if len(end) == 1 else '--'}{end} {operands}curl") == ""


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [*WRAPPERS, *HANDLERS, "-c", "-exec", ";", "-", "--", "-S", "x=1", "+o", "a", ""]
        )
    )
)
def test_no_words_stop_the_way_through_wrappers(words: list[str]) -> None:
    assert all(isinstance(text, str) for _, text in runs(words, "a"))


@pytest.mark.parametrize(
    "word", ["env ", "eval ", "find -exec ", "busybox ", "bash -c ", "env -S ", "flock x "]
)
def test_long_chains_of_wrappers_come_to_an_end(word: str) -> None:
    refusal(word * 20_000 + "curl")


def test_code_within_code_is_judged_to_some_depth() -> None:
    def nested(levels: int) -> str:
        return "eval " * levels + "curl"

    assert refusal(nested(8))
    assert refusal(nested(9)) == ""
    assert refusal("find -exec " * LEVELS + "curl")
    assert refusal("$( " * (DEPTH - 10) + "curl" + " )" * (DEPTH - 10))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.one_of(NOISE, st.lists(st.sampled_from([*HANDLERS, "curl", "{,}", " ", "; "]))),
        max_size=3,
    )
)
def test_nothing_stops_an_inspection(texts: list[list[str]]) -> None:
    text = " ".join(part for parts in texts for part in parts)
    assert refusal(text) == "" or "may not be run here" in refusal(text)


@settings(deadline=None)
@given(mutations())
def test_no_refusal_of_what_names_no_banned_program(text: str) -> None:
    assert refusal(text) == ""


# -- functions -----------------------------------------------------------------------------------------------


def test_a_function_stands_for_a_program_once_it_is_defined() -> None:
    assert refusal("curl x; curl() { :; }")
    assert refusal("curl() { :; }; curl x") == ""
    assert refusal("curl() { :; }; /usr/bin/curl x")
    assert refusal("curl() { :; }; env curl x")
    assert refusal("curl() { :; }; unset -f curl; curl x")


def test_a_banned_name_is_no_function_of_another_command() -> None:
    policy = Policy.of({})
    policy.inspect("curl() { :; }")
    assert refusal("curl x", policy)


# -- the words of a refusal ----------------------------------------------------------------------------------


def test_a_refusal_says_what_where_and_what_can_be_done() -> None:
    assert refusal("x=1; curl -s y") == (
        "'curl' (in `x=1; curl …`) may not be run here. This is the policy of this server (ban mode: text), "
        "not a failure: do without, or ask its operator, who can start it with --allow curl."
    )


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("curl", "curl"),
        ("cd /\n  /usr/bin/curl x\nls", "/usr/bin/curl …"),
        ("sudo -u x curl y", "sudo …"),
        ("x=`curl`", "x=`curl`"),
        ("bash -c 'a; curl x'", "bash …"),
        ("cat <<E; y\n$(curl)\nE\n", "cat <<E …"),
        (f"echo {'x' * 100}; curl y", "… curl …"),
        (f"'/{'x' * 100}/curl' y", "… …"),
    ],
)
def test_the_place_is_shown_without_tearing_a_word(command: str, where: str) -> None:
    assert f"(in `{where}`)" in refusal(command)


def test_the_mode_in_force_is_named() -> None:
    policy = Policy.of({})
    policy.mode = "kernel"
    assert "(ban mode: kernel)" in refusal("curl", policy)


# -- options -------------------------------------------------------------------------------------------------


def test_programs_are_known_by_their_other_names() -> None:
    policy = Policy.of({})
    for name in (
        "google-chrome-stable",
        "chromium",
        "firefox-esr",
        "netcat",
        "nc.openbsd",
        "xhs",
        "curl.exe",
    ):
        assert policy.refuses(name)
    assert refusal("http GET x")
    assert not policy.refuses("http"), "apt runs a program of this name"


def test_ban_adds_and_allow_takes_away() -> None:
    policy = Policy.of({"ban": ["rsync"], "allow": ["curl", "chrome"]})
    assert policy.refuses("rsync")
    assert policy.refuses("wget")
    assert not policy.refuses("curl")
    assert not policy.refuses("google-chrome")
    assert Policy.of({"allow": ["httpie"]}).typed == frozenset()
    assert Policy.of({"allow": ["ncat"]}).refuses("nc")
    assert refusal("alias a=b", Policy.of({"allow": ["alias"]})) == ""


def test_when_everything_is_allowed_nothing_is_read() -> None:
    policy = Policy.of({"allow": BANNED})
    assert not policy.banned
    assert refusal("curl", policy) == ""


def test_a_file_adds_names(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("# tools\nrsync  # copies\n\n scp\r\n")
    policy = Policy.of({"ban-file": str(path), "allow": ["scp"]})
    assert [policy.refuses(name) for name in ("rsync", "scp", "curl", "tools")] == [
        True,
        False,
        True,
        False,
    ]


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    """A policy of few approved programs, one of them a link to another."""
    (tmp_path / "python9").write_text("")
    (tmp_path / "python").symlink_to("python9")
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "names"
    path.write_text("git\nls\npython\nxargs\nfind\ncurl\n")
    return Policy.of({"allow-only": str(path)})


@pytest.mark.parametrize(
    "command",
    [
        "git log | ls; cd /; [ x = y ] && echo $x",
        "if true; then for i in 1 2; do printf $i; done; fi; ((1)) && [[ a ]] && export x=1",
        "xargs git log; find . -exec ls {} +; find . -exec {} \\;",
        "f() { ls; }; f",
        "$x; $(ls) y; ./$x",
        "python -c 'import os'; python9 x; curl y",
        "command -v make; type make; exec git; eval ls; trap ls EXIT",
        "(time -p ls); ! ls; { ls; } & coproc ls",
    ],
)
def test_what_is_approved_runs_and_so_does_bash_itself(command: str, only: Policy) -> None:
    assert refusal(command, only) == ""


@pytest.mark.parametrize(
    "command",
    [
        *("make", "./configure", "git log; make", "$(make)", "xargs make", "find . -exec make +"),
        *(
            "eval make",
            "bash -c ls",
            "exec make",
            "env ls",
            "/x/y",
            "f() { make; }",
            "f; f() { :; }",
        ),
    ],
)
def test_all_else_is_refused(command: str, only: Policy) -> None:
    assert "who can add it to the file of --allow-only" in refusal(command, only)
    assert "who can start it with --allow alias" in refusal("alias a=b", only)


def test_functions_of_earlier_commands_need_no_approval(only: Policy) -> None:
    assert refusal("helper x", only)
    only.inspect("helper() { ls; }")
    assert refusal("helper x", only) == ""


def test_a_ban_is_stronger_than_an_approval(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("curl\nls\n")
    policy = Policy.of({"allow-only": str(path), "ban": ["ls"], "allow": ["make"]})
    assert [policy.refuses(name) for name in ("curl", "ls", "make", "cat")] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ban": ["/usr/bin/x"]}, "--ban: '/usr/bin/x' must be the name of a program"),
        ({"allow": ["curl -s"]}, "--allow: 'curl -s' must be the name of a program"),
        ({"ban": ["x"], "allow": ["x"]}, "'x' is named by --ban and by --allow"),
        ({"ban-file": "nowhere"}, "--ban-file 'nowhere' cannot be read: No such file"),
        ({"allow-only": "folder"}, "--allow-only 'folder' cannot be read: Is a directory"),
        ({"ban-file": "binary"}, "--ban-file 'binary' cannot be read: it is not UTF-8 text"),
        ({"ban-file": "spaced"}, "--ban-file 'spaced': 'a b' must be the name of a program"),
    ],
)
def test_options_that_cannot_work_are_named(
    options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "spaced").write_text("a b\n")
    with pytest.raises(ValueError, match=re.escape(words)):
        Policy.of(options)


# -- the whole way -------------------------------------------------------------------------------------------


@pytest.fixture
def session() -> Iterator[None]:
    """What a test started is ended behind it."""
    yield
    close()


@pytest.mark.usefixtures("session")
def test_nothing_of_a_refused_command_runs(make_call: Callable[..., Call], tmp_path: Path) -> None:
    call = make_call(tmp_path, ban_mode="text")
    outcome = bash.call({"command": "touch made; curl x"}, call)
    assert outcome.code == ErrorCode.BANNED_COMMAND
    assert not (tmp_path / "made").exists()
    assert not bash.call({"command": "touch made; echo curl"}, call).failed
    assert (tmp_path / "made").exists()


@pytest.mark.usefixtures("session")
def test_the_options_are_read_once_at_the_start(
    make_call: Callable[..., Call], tmp_path: Path
) -> None:
    path = tmp_path / "names"
    path.write_text("rsync\n")
    options: dict[str, Any] = {option.name: None for option in bash.options}
    start({**options, "ban-file": str(path)})
    path.unlink()
    outcome = bash.call(
        {"command": "rsync x"}, make_call(tmp_path, ban_file=str(path), ban_mode="text")
    )
    assert outcome.code == ErrorCode.BANNED_COMMAND


def test_a_server_refuses_and_goes_on(wire: Start, tmp_path: Path) -> None:
    server = wire(
        "toolroll_bash", "--ban", "id", "--allow=curl", "--ban-mode", "text", folder=tmp_path
    ).open()
    result = server.call("Bash", command="cd /; id")
    assert result["isError"]
    assert (
        "Error [BANNED_COMMAND]: 'id' (in `cd /; id`) may not be run here."
        in result["content"][0]["text"]
    )
    assert server.call("Bash", command="pwd")["content"][0]["text"] != "/\n"


def test_a_server_with_a_bad_policy_does_not_start(wire: Start, tmp_path: Path) -> None:
    server = wire("toolroll_bash", "--allow-only", tmp_path / "nowhere")
    assert server.close() == 2
    assert "cannot be read: No such file or directory" in server.errors
