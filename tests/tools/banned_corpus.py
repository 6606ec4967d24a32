r"""Ways around a list of banned commands and commands that only look like one, as data.

An evasion is run where fake programs named like the banned ones lie first on PATH, in `$BIN`, and tell
when they ran; so do the words given to `$BIN/record`.  `lynx` there is a copy of bash, as some ways
need a program that is no script.  Each starts in an empty folder of its own that holds only `files`.
Knows nothing of how a command is judged; docs/security.md has the table made of it.
"""

from dataclasses import dataclass, field

TEXT, SHIMS, KERNEL = MODES = ("text", "shims", "kernel")

NOWHERE: frozenset[str] = frozenset()
"""Each mode stops it: the name stands in the text where a command begins."""

UNREAD = frozenset({TEXT})
"""The text does not tell what will run: it is made at run time, or another program reads it."""

BY_PATH = frozenset({TEXT, SHIMS})
"""Nor does the session's own shell start it, which looks before it does, or a look on PATH find it."""

BUILT_IN = frozenset({TEXT, KERNEL})
"""A builtin does it: no program is started."""

BY_ITSELF = frozenset(MODES)
"""No program of a banned name is ever started."""


@dataclass(frozen=True)
class Evasion:
    """A command that runs `program` when nothing is banned; `passes` are the modes that let it.

    `needs` are programs it cannot do without, or names of `PROBES`.
    """

    name: str
    text: str
    passes: frozenset[str] = NOWHERE
    program: str = "curl"
    files: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Innocent:
    """A command that prints exactly `prints` and ends with `status`, whatever is banned."""

    name: str
    text: str
    prints: str
    status: int = 0
    files: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


RUNS_CURL = "#!/bin/sh\ncurl -s http://example.invalid/\n"

IA32 = """
import ctypes, mmap, struct, sys
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, prot=7)  # MAP_32BIT
base = ctypes.addressof(ctypes.c_char.from_buffer(page))
path, argv = base + 1024, base + 512
page[1024:1024 + len(sys.argv[1]) + 1] = sys.argv[1].encode() + bytes(1)
page[512:520] = struct.pack("<II", path, 0)
# mov eax, 11 (execve); mov ebx, path; mov ecx, argv; xor edx, edx; int 0x80; ret
code = b"\\xb8\\x0b\\0\\0\\0\\xbb" + struct.pack("<I", path) + b"\\xb9" + struct.pack("<I", argv)
code = b"\\x53" + code + b"\\x31\\xd2\\xcd\\x80\\x5b\\xc3"  # rbx belongs to the caller
page[:len(code)] = code
sys.exit(ctypes.CFUNCTYPE(ctypes.c_int)(base)() & 0xff)
"""
"""execve as a 32-bit program calls it, from a 64-bit one."""

X32 = """
import ctypes, sys
argv = (ctypes.c_char_p * 2)(b"x", None)
ctypes.CDLL(None).syscall(0x40000000 | 520, sys.argv[1].encode(), argv, None)
sys.exit(1)
"""
"""execve of the x32 interface, which few kernels still have."""

EDGE = """
import ctypes, mmap, sys
page = mmap.mmap(-1, 8192)
base = ctypes.addressof(ctypes.c_char.from_buffer(page))
path = sys.argv[1].encode() + bytes(1)
page[4096 - len(path):4096] = path
libc = ctypes.CDLL(None)
libc.munmap(ctypes.c_void_p(base + 4096), 4096)
argv = (ctypes.c_char_p * len(sys.argv))(*(word.encode() for word in sys.argv[1:]), None)
libc.execve(ctypes.c_void_p(base + 4096 - len(path)), argv, None)
"""
"""execve of a path that ends where the readable memory does."""

UNDUMPABLE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
os.execv(sys.argv[1], sys.argv[1:])
"""
"""execve by a process whose memory others of its user may not read."""

PROBES = {
    "env -S": "env -S true",
    "GNU sed": "echo | sed '1e true'",
    "GNU tar": "tar --version | grep -q GNU",
    "GNU xargs": "xargs --version | grep -q GNU",
    "a loader": 'test "$LOADER"',
    "namespaces": "unshare -rm true",
    "32-bit calls": f"python3 -c '{IA32}' \"$(type -P true)\"",
    "x32 calls": f"python3 -c '{X32}' \"$(type -P true)\"",
}
"""Commands that end with 0 where the machine has what some evasions need."""

EXECVEAT = """
import ctypes, os, sys
number = {"x86_64": 322}.get(os.uname().machine, 281)
argv = (ctypes.c_char_p * 2)(b"x", None)
where, name, flags = int(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
ctypes.CDLL(None).syscall(number, where, name, argv, None, flags)
"""

ALIAS_IS_SET = '[[ $(compgen -a) ]] && "$BIN/record" alias'

EVASIONS: dict[str, tuple[Evasion, ...]] = {
    "the word itself": (
        Evasion("plain", "curl http://example.invalid/"),
        Evasion("path", "$BIN/curl -s x"),
        Evasion("absolute-path", 'exec 3<&-; "${BIN}"/wget x', program="wget"),
        Evasion("relative-path", 'cd "$BIN" && ./nc x 1', program="nc"),
        Evasion("dotted-path", '"$BIN"/.././bin//telnet x', program="telnet"),
        Evasion("proc-root-path", "/proc/self/root$BIN/curl"),
        Evasion("last-of-list", "true; echo a; curl"),
        Evasion("and", "true && wget -q x", program="wget"),
        Evasion("or", "false || links x", program="links"),
        Evasion("pipeline", "echo hi | nc x 1", program="nc"),
        Evasion("pipe-both", "echo hi |& nc x 1", program="nc"),
        Evasion("background", "curl & wait"),
        Evasion("second-line", "echo a\n\n  \tcurl x\necho b"),
        Evasion("behind-comment", "# fetch\ncurl # it"),
        Evasion("behind-assignments", "A=1 B='x y' C[0]=z curl"),
        Evasion("behind-redirections", ">out 2>&1 {fd}<&0 curl"),
        Evasion("behind-here-string", "<<<x curl"),
        Evasion("negated", "! curl"),
        Evasion("timed", "time -p curl"),
        Evasion("group", "{ { curl; }; }"),
        Evasion("subshell", "((curl) )"),
        Evasion("condition", "if curl; then :; fi"),
        Evasion("branch", "if false; then :; elif false; then :; else wget; fi", program="wget"),
        Evasion("loop", "for i in 1; do xh; done", program="xh"),
        Evasion("loop-without-do", "for ((i = 0; i < 1; i++)) { axel; }", program="axel"),
        Evasion("while-condition", "while curl && false; do :; done"),
        Evasion("case-branch", "case a in (a) curl ;; esac"),
        Evasion("case-fallthrough", "case a in a) ;;& b|c) ;; *) aria2c ;; esac", program="aria2c"),
        Evasion("select", "select x in a; do w3m; break; done <<< 1", program="w3m"),
        Evasion("behind-test", "[[ a == a && ( b < c ) ]] && curl"),
        Evasion("behind-arithmetic", "(( 3 > 2 )) && curl"),
        Evasion("behind-here-documents", "cat <<A - <<-'B'\na\nA\n\tb\n\tB\ncurl"),
        Evasion("behind-false-delimiter", "cat <<'EO F'\nEOF\n EO F\nEO F\ncurl"),
        Evasion("behind-esac", "case x in x) echo esac;; esac; curl"),
        Evasion("function-body", "f() { curl; }; f; unset -f f"),
        Evasion("function-subshell", "function f ( curl ); f; unset -f f"),
        Evasion("function-of-keyword", "f() if curl; then :; fi; f; unset -f f"),
        Evasion("recursion", "f() { [[ $1 ]] || { f x; return; }; chrome; }; f", program="chrome"),
        Evasion("binary", '"$BIN/lynx" "$BIN/record" lynx', program="lynx"),
    ),
    "quoting": (
        Evasion("double-quotes", '"curl"'),
        Evasion("single-quotes", "'wget'", program="wget"),
        Evasion("inner-quotes", "c'u'r\"l\""),
        Evasion("empty-quotes", "cu''r\"\"l"),
        Evasion("backslash", "\\curl"),
        Evasion("inner-backslash", "c\\url"),
        Evasion("continued-line", "cu\\\nrl"),
        Evasion("continued-in-quotes", '"cu\\\nrl"'),
        Evasion("ansi-hex", "$'\\x63url'"),
        Evasion("ansi-octal", "$'\\143\\165rl'"),
        Evasion("ansi-unicode", "$'cu\\u72\\U0000006c'"),
        Evasion("ansi-cut-by-nul", "$'curl\\0not'"),
        Evasion("ansi-inside", "cu$'r'l"),
        Evasion("translated", '$"curl"'),
        Evasion("quoted-path", "\"$BIN\"'/c'ur\\l"),
        Evasion("quoted-function-body", "f() { 'cu'rl; }; f; unset -f f"),
    ),
    "substitution": (
        Evasion("dollar", "echo $(curl)"),
        Evasion("backticks", "echo `curl`"),
        Evasion("nested-backticks", "echo `echo \\`curl\\``"),
        Evasion("in-double-quotes", 'echo "a $(curl) b"'),
        Evasion("deep", 'echo "$(echo "$(echo "$(wget)")")"', program="wget"),
        Evasion("beside-case", "echo $(case a in a) curl;; esac)"),
        Evasion("beside-comment", "echo $(echo a # )\ncurl\n)"),
        Evasion("in-assignment", "x=$(curl)"),
        Evasion("in-array", "x=(a $(curl) b)"),
        Evasion("in-default", "echo ${nothing:-$(curl)}"),
        Evasion("in-default-in-quotes", "echo \"${nothing:-a'$(curl)'}\""),
        Evasion("in-pattern", "x=abc; echo ${x/$(curl)/d}"),
        Evasion("in-substring", "x=abc; echo ${x:$(curl; echo 1)}"),
        Evasion("in-subscript", "a[$(curl; echo 1)]=2"),
        Evasion("in-arithmetic", "echo $(( 1 + $(curl; echo 1) ))"),
        Evasion("in-old-arithmetic", "echo $[ $(curl; echo 1) ]"),
        Evasion("in-condition", "[[ -n $(curl) ]]"),
        Evasion("in-loop-words", "for x in $(curl); do :; done"),
        Evasion("in-case-word", "case $(curl) in *) ;; esac"),
        Evasion("in-case-pattern", "case x in $(curl)) ;; esac"),
        Evasion("in-redirection", 'echo a > "f$(curl)"'),
        Evasion("in-here-string", "cat <<< $(curl)"),
        Evasion("in-here-document", "cat <<E\na $(curl) b\nE"),
        Evasion("in-here-document-backticks", "cat <<-E\n\ta `curl` b\n\tE"),
        Evasion("in-here-document-default", "cat <<E\n${nothing:-'$(curl)'}\nE"),
        Evasion("behind-continued-dollar", "echo $\\\n(curl)"),
        Evasion("process-input", "cat <(curl)"),
        Evasion("process-output", "echo a > >(cat; curl); wait $!"),
        Evasion("process-in-words", "diff <(wget) <(:)", program="wget"),
        Evasion("no-arithmetic", "echo $( (curl) )"),
        Evasion("almost-arithmetic", "echo $((curl); (true))"),
        Evasion("in-translated", 'echo $"a $(curl)"'),
    ),
    "expansion": (
        Evasion("variable", "c=curl; $c x", UNREAD),
        Evasion("braced-variable", "c=cur; ${c}l", UNREAD),
        Evasion("default-value", "${nothing:-curl}", UNREAD),
        Evasion("alternative-value", "${PATH:+curl}", UNREAD),
        Evasion("empty-variable", "cu${nothing}rl", UNREAD),
        Evasion("empty-positional", "cu$@rl", UNREAD),
        Evasion("lower-case", "c=CURL; ${c,,}", UNREAD),
        Evasion("replaced", "c=cXrl; ${c/X/u}", UNREAD),
        Evasion("trimmed", "c=xxcurl; ${c##x*x}", UNREAD),
        Evasion("substring", "c=acurlb; ${c:1:4}", UNREAD),
        Evasion("indirect", "c=curl d=c; ${!d}", UNREAD),
        Evasion("name-reference", "c=curl; declare -n r=c; $r; unset -n r", UNREAD),
        Evasion("prompt-expanded", "c='\\143url'; ${c@P}", UNREAD),
        Evasion("escapes-expanded", "c='\\x63url'; ${c@E}", UNREAD),
        Evasion("array", 'a=(curl -s x); "${a[@]}"', UNREAD),
        Evasion("array-element", "a=([7]=curl); ${a[7]}", UNREAD),
        Evasion("associative", "declare -A map=([k]=curl); ${map[k]}", UNREAD),
        Evasion("positional", 'set -- curl x; "$@"', UNREAD),
        Evasion("argument", 'f() { "$1"; }; f curl; unset -f f', UNREAD),
        Evasion("last-argument", ": curl; $_", UNREAD),
        Evasion("split", "c=curlxa; IFS=x; $c; IFS=$' \\t\\n'", UNREAD),
        Evasion("read", "read -r c <<< curl; $c", UNREAD),
        Evasion("mapfile", "mapfile -t lines <<< curl; ${lines[0]}", UNREAD),
        Evasion("printf", "printf -v c '\\x63url'; $c", UNREAD),
        Evasion("echoed", "$(echo curl)", UNREAD),
        Evasion("echoed-part", "c$(printf u)rl", UNREAD),
        Evasion("reversed", "$(rev <<< lruc)", UNREAD, needs=("rev",)),
        Evasion("translated-letters", "$(echo phey | tr a-z n-za-m)", UNREAD),
        Evasion("decoded", "$(echo Y3VybA== | base64 -d)", UNREAD, needs=("base64",)),
        Evasion("from-file", "$(<f) x", UNREAD, files={"f": "curl\n"}),
        Evasion("path-variable", "c=cu; $BIN/${c}rl", UNREAD),
        Evasion("whole-path-variable", "c=$BIN/wg; ${c}et", UNREAD, program="wget"),
        Evasion("found-path", "c=cur; $(type -P ${c}l)", UNREAD),
        Evasion("stack", 'pushd -n "$BIN/nc" >/dev/null; ~1 x; popd -n >/dev/null', UNREAD, "nc"),
    ),
    "globs and braces": (
        Evasion("question-mark", "$BIN/c?rl", UNREAD),
        Evasion("star", "$BIN/wg*t x", UNREAD, program="wget"),
        Evasion("bracket", "$BIN/[c]ur[k-m]", UNREAD),
        Evasion("directory-glob", "${BIN%/*}/b?n/curl"),
        Evasion("extended-glob", "shopt -s extglob\n$BIN/@(curl|x)\nshopt -u extglob", BY_PATH),
        Evasion("star-here", 'cd "$BIN" && ./c*l', UNREAD),
        Evasion(
            "path-globbed-into-array", 'a=("$BIN"/ne*); a=("$BIN"/tel*); "$a"', UNREAD, "telnet"
        ),
        Evasion("brace-list", "{curl,-s,x}"),
        Evasion("brace-part", "{cur,wge}l"),
        Evasion("brace-prefix", "cu{rl,} x"),
        Evasion("brace-range", "{c..c}url"),
        Evasion("brace-nested", "{{curl,x},y}"),
        Evasion("brace-empty-word-before", "{,curl}"),
        Evasion("brace-path", '"$BIN"/{curl,x}'),
    ),
    "programs and words that run a command": (
        Evasion("env", "env curl"),
        Evasion("env-options", 'env -u A -i --chdir=. PATH="$PATH" B=1 curl'),
        Evasion("env-split", "env -S 'A=1 curl -s'", needs=("env -S",)),
        Evasion("env-split-joined", "env '-Scurl -s'", needs=("env -S",)),
        Evasion("env-long-split", "env --split-string='curl x'", needs=("env -S",)),
        Evasion("env-path", '/usr/bin/env "$BIN/curl"'),
        Evasion("command", "command -p -- true; command -- curl"),
        Evasion("quoted-command", "\\command cu'rl'"),
        Evasion("exec", "(exec curl)"),
        Evasion("exec-renamed", "(exec -cla true wget)", program="wget"),
        Evasion("builtin", "builtin command curl"),
        Evasion("builtin-eval", "builtin eval cur'l'"),
        Evasion("nice", "nice -n 5 curl; true"),
        Evasion("nice-short", "nice -5 nc", program="nc"),
        Evasion("nohup", "nohup curl"),
        Evasion("timeout", "timeout -k 3 --signal=KILL 5s curl"),
        Evasion("time-program", "env time -f %e curl", needs=("time",)),
        Evasion("xargs", "echo x | xargs curl"),
        Evasion("xargs-options", "echo x | xargs -n1 -I{} -P 2 curl {}"),
        Evasion("xargs-shell", "echo x | xargs -n1 sh -c 'wget $0'", program="wget"),
        Evasion("find-exec", "find . -maxdepth 0 -exec curl {} \\;"),
        Evasion("find-execdir", "find . -maxdepth 0 \\( -type d -execdir curl {} + \\)"),
        Evasion("find-ok", "echo y | find . -maxdepth 0 -ok curl ';'"),
        Evasion("find-shell", "find . -maxdepth 0 -exec sh -c 'curl \"$1\"' x {} +"),
        Evasion("sh", "sh -c curl"),
        Evasion("sh-path", "/bin/sh -ec 'true && curl'"),
        Evasion("bash-options", "bash --norc -o errexit +x -c 'echo a; curl' arg"),
        Evasion("bash-login", "bash -lc 'PATH=$1; curl' x \"$PATH\""),
        Evasion("sh-in-sh", "sh -c \"bash -c 'sh -c curl'\""),
        Evasion("eval", "eval curl"),
        Evasion("eval-words", "eval 'true;' c'ur'l x"),
        Evasion("eval-twice", "eval eval '\"\\\\curl\"'"),
        Evasion("trap", "(trap curl EXIT)"),
        Evasion("trap-debug", "(trap -- 'curl; trap - DEBUG' DEBUG; true)"),
        Evasion("trap-err", "(trap 'wget x' ERR; false)", program="wget"),
        Evasion("trap-signal", "(trap curl USR1; kill -USR1 $BASHPID)"),
        Evasion("coproc", "coproc curl; wait $!"),
        Evasion("coproc-named", "coproc fetch { curl; }; wait $!"),
        Evasion("sudo", "sudo -u root A=1 curl"),
        Evasion("doas", "doas curl"),
        Evasion("busybox", "busybox wget x", program="wget"),
        Evasion("busybox-path", '"$BIN"/toybox nc x', program="nc"),
        Evasion("watch", "watch -n 1 'curl x'"),
        Evasion("parallel", "parallel curl ::: x"),
        Evasion("stacked", "command env A=1 nice nohup timeout 5 env -- xargs -r curl <<< x"),
    ),
    "words that only run it later": (
        Evasion("eval-variable", "c='cur l'; eval ${c/ /}", UNREAD),
        Evasion(
            "eval-decoded", 'eval "$(echo Y3VybCB4Cg== | base64 -d)"', UNREAD, needs=("base64",)
        ),
        Evasion("sh-variable", 'c="cu"; sh -c "${c}rl"', UNREAD),
        Evasion("exec-variable", "(c=curl; exec $c)", UNREAD),
        Evasion("sh-positional", "bash -c '\"$@\"' x curl", UNREAD),
        Evasion("env-variable", "c=curl; env $c", UNREAD),
        Evasion("xargs-data", "echo curl | xargs env", UNREAD),
        Evasion("xargs-replaced", "echo rl | xargs -I{} env cu{}", UNREAD),
        Evasion("xargs-shell-data", "echo curl | xargs -I% sh -c %", UNREAD),
        Evasion("find-found", "find \"$BIN\" -name 'cur?' -exec {} \\;", BY_PATH),
        Evasion("trap-variable", "(c=curl; trap '$c' EXIT)", UNREAD),
        Evasion("wrapper-variable", "e=env; $e curl", UNREAD),
        Evasion("shell-variable", "$BASH -c curl", UNREAD),
        Evasion(
            "exported-function", "f() { ${1}l; }; export -f f; bash -c 'f cur'; unset -f f", UNREAD
        ),
        Evasion("smuggled-function", "env 'BASH_FUNC_x%%=() { curl; }' bash -c x", UNREAD),
        Evasion("setsid", "setsid -w curl", needs=("setsid",)),
        Evasion("stdbuf", "stdbuf -o0 wget", program="wget", needs=("stdbuf",)),
        Evasion("flock", "flock . curl", needs=("flock",)),
        Evasion("flock-shell", "flock . -c curl", needs=("flock",)),
        Evasion("ionice", "ionice -c 3 curl", needs=("ionice",)),
        Evasion("taskset", "taskset 1 curl", needs=("taskset",)),
        Evasion("prlimit", "prlimit --nofile=64 curl", UNREAD, needs=("prlimit",)),
        Evasion("setarch", 'setarch "$(uname -m)" -R curl', UNREAD, needs=("setarch",)),
        Evasion("typescript", "script -qc curl /dev/null", needs=("script",)),
        Evasion("setsid-path", 'setsid -w "$BIN/curl"', needs=("setsid",)),
        Evasion("split-filter", "echo a | split --filter=curl", UNREAD, needs=("split",)),
        Evasion("sed", "echo a | sed '1e curl'", UNREAD, needs=("GNU sed",)),
        Evasion("run-parts", "run-parts d", UNREAD, files={"d/a": RUNS_CURL}, needs=("run-parts",)),
    ),
    "corners of the shell": (
        Evasion("arithmetic-value", "a='x[$(curl)]'; (( a ))", UNREAD),
        Evasion("let", "let 'x[$(curl)]' 2>/dev/null", UNREAD),
        Evasion("prompt-expansion", "c='$(curl)'; : ${c@P}", UNREAD),
        Evasion("test-variable", "[[ -v 'x[$(curl)]' ]]", UNREAD),
        Evasion("printf-target", "printf -v 'x[$(curl)]' 1", UNREAD),
        Evasion("unset-target", "x=(); unset 'x[$(curl)]'", UNREAD),
        Evasion("indirect-subscript", "a=(1); r='a[$(curl; echo 0)]'; : ${!r}", UNREAD),
        Evasion("integer", "declare -i n; n='x[$(curl)]'", UNREAD),
        Evasion("trace-prompt", "(PS4='$(curl)'; set -x; true)", UNREAD),
        Evasion("prompt-command", "PROMPT_COMMAND=curl bash --norc -i <<< true", UNREAD),
        Evasion("prompt", "PS1='$(curl)' bash --norc -i <<< true", UNREAD),
        Evasion("mapfile-callback", "mapfile -c 1 -C curl x <<< a", UNREAD),
        Evasion("completion", "compgen -C curl x", UNREAD),
        Evasion("completion-words", "compgen -W '$(curl)'", UNREAD),
        Evasion("job-command", "jobs -x curl", UNREAD),
        Evasion("not-found-handler", "(command_not_found_handle() { curl; }; nosuchprogram)"),
        Evasion("directory-function", "(cd() { curl; }; cd /)"),
        Evasion("late-job", "{ sleep 0.01; nc x; } & wait", program="nc"),
        Evasion("double-fork", "( ( c=nc; ${c} x ) & wait )", UNREAD, "nc"),
        Evasion("descriptor-script", ". /dev/fd/4 4<<< curl", UNREAD),
        Evasion("file-read-by-dot", ". ./f", UNREAD, files={"f": "curl\n"}),
        Evasion("file-read-by-source", "source ./f x", UNREAD, files={"f": "c$2url\n"}),
        Evasion("process-read-by-dot", ". <(echo cu'rl')", UNREAD),
        Evasion("path-emptied", '(cd "$BIN"; PATH=; c=cur; ${c}l)', UNREAD),
    ),
    "aliases": (
        Evasion("alias", "(shopt -s expand_aliases; alias c=curl; eval c)"),
        Evasion("alias-set", f"(builtin alias ll=ls; {ALIAS_IS_SET})", program="alias"),
        Evasion("alias-unseen", f"(a=alias; $a ll=ls; {ALIAS_IS_SET})", UNREAD, "alias"),
        Evasion(
            "alias-enabled", f"(a=alias; enable $a; $a ll=ls; {ALIAS_IS_SET})", BUILT_IN, "alias"
        ),
        Evasion(
            "alias-by-array",
            "(shopt -s expand_aliases; BASH_ALIASES[c]=curl; eval c)",
            UNREAD,
        ),
        Evasion("alias-elsewhere", "bash -O expand_aliases -c $'alias c=curl\\nc'"),
        Evasion(
            "alias-read-elsewhere",
            "bash -O expand_aliases f",
            UNREAD,
            files={"f": "alias c=curl\nc\n"},
        ),
    ),
    "what a shell reads": (
        Evasion("script", "./f", UNREAD, files={"f": RUNS_CURL}),
        Evasion("here-document", "sh <<E\ncurl\nE"),
        Evasion("quoted-here-document", "bash -s x <<'E'\nc=cur; ${c}l\nE", UNREAD),
        Evasion("here-string", "bash <<< 'cu\\rl'"),
        Evasion("pipe", "echo 'curl x' | sh", UNREAD),
        Evasion("pipe-decoded", "echo Y3VybCB4Cg== | base64 -d | bash", UNREAD, needs=("base64",)),
        Evasion("pipe-hex", "printf '\\x63\\x75\\x72\\x6c' | tee f | sh", UNREAD),
        Evasion("input-file", "sh < f", UNREAD, files={"f": "curl\n"}),
        Evasion("script-argument", "sh f x", UNREAD, files={"f": "curl\n"}),
        Evasion("process-substitution", "bash <(printf 'cu%s' rl)", UNREAD),
        Evasion(
            "script-just-written", "cat > f <<'E'\n#!/bin/sh\ncurl x\nE\nchmod +x f; ./f", UNREAD
        ),
        Evasion("script-without-line", "./f", UNREAD, files={"f": "curl\n"}),
        Evasion("script-by-wrapper", "nice ./f", UNREAD, files={"f": RUNS_CURL}),
        Evasion("script-by-path", "PATH=$PWD:$PATH f", UNREAD, files={"f": RUNS_CURL}),
        Evasion("bash-env", "BASH_ENV=./f bash -c :", UNREAD, files={"f": "curl\n"}),
        Evasion("bash-env-text", "BASH_ENV='$(curl)' bash -c :", UNREAD),
        Evasion("sh-env", "ENV=./f sh -i -c :", UNREAD, files={"f": "curl\n"}),
        Evasion("rc-file", "bash --rcfile f -i -c :", UNREAD, files={"f": "curl\n"}),
        Evasion("rc-process", "bash --init-file <(echo curl) -i -c true", UNREAD),
        Evasion(
            "profile", "HOME=$PWD bash -l -c :", BY_PATH, files={".bash_profile": '"$BIN/curl"\n'}
        ),
    ),
    "names and places": (
        Evasion("symlink", 'ln -s "$BIN/curl" x; ./x', UNREAD),
        Evasion("hash", '(hash -p "$BIN/curl" x; x)'),
        Evasion("hash-array", "(BASH_CMDS[x]=$BIN/curl; x)", UNREAD),
        Evasion("path-first", "(PATH=$BIN:$PATH; c=cur; ${c}l)", UNREAD),
        Evasion("path-for-a-child", "PATH=$BIN:$PATH sh -c 'c=cur; ${c}l'", BY_PATH),
        Evasion("path-of-env", 'env PATH="$BIN" /bin/sh -c "$(echo curl)"', BY_PATH),
        Evasion("symlink-chain", 'ln -s "$BIN/curl" y; ln -s y z; ln -s "$PWD/z" x; ./x', UNREAD),
        Evasion("symlink-in-path", 'ln -s "$BIN/nc" x; PATH=.:$PATH x', BY_PATH, "nc"),
        Evasion("symlinked-folder", 'ln -s "$BIN" d; d/c*l', UNREAD),
        Evasion("symlink-of-the-name", 'ln -s "$BIN/record" curl; ./curl curl'),
        Evasion("symlink-of-the-name-unseen", 'ln -s "$BIN/record" curl; ./cur? curl', UNREAD),
        Evasion(
            "first-found-removed",
            "f=$(type -P fire${nothing}fox); [[ $f == $BIN/* ]] || rm -f \"$f\"; sh -c 'f=fire; ${f}fox'",
            BY_PATH,
            "firefox",
        ),
        Evasion(
            "mounted-link",
            "mkdir d e; ln -s \"$BIN/curl\" e/x; unshare -rm sh -c 'mount --bind e d; d/x'",
            BY_PATH,
            needs=("namespaces",),
        ),
        Evasion(
            "user-namespace",
            "unshare -rm sh -c 'c=cur; $BIN/${c}l'",
            BY_PATH,
            needs=("namespaces",),
        ),
        Evasion(
            "long-path",
            'sh -c \'cd "$BIN"; p=$(printf "./%.0s" $(seq 2000)); c=cur; $p${c}l\'',
            BY_PATH,
            needs=("seq",),
        ),
        Evasion("proc-root", "c=curl; /proc/self/root$BIN/$c", UNREAD),
        Evasion("proc-cwd", '(cd "$BIN"; c=curl; /proc/self/cwd/$c)', UNREAD),
        Evasion("proc-thread-cwd", '(cd "$BIN"; c=curl; /proc/thread-self/cwd/$c)', UNREAD),
        Evasion("descriptor", 'exec 9< "$BIN/curl"; /dev/fd/9; exec 9<&-', UNREAD),
        Evasion("descriptor-of-folder", '(exec 9< "$BIN"; /proc/self/fd/9/cur?)', UNREAD),
        Evasion(
            "descriptor-of-shell", 'exec 9< "$BIN/curl"; env /proc/$$/fd/9; exec 9<&-', BY_PATH
        ),
        Evasion("argument-zero", '(exec -a ls "$BIN"/cu?l)', UNREAD),
        Evasion(
            "busybox-link-of-the-name", 'ln -s "$BIN/busybox" wget; ./wget wget', program="wget"
        ),
        Evasion("busybox-read", "b=busybox; $b wget x", BY_PATH, "wget"),
        Evasion("toybox-elsewhere", "setsid -w toybox nc", program="nc", needs=("setsid",)),
    ),
    "interpreters": (
        Evasion("python-system", "python3 -c 'import os; os.system(\"curl\")'", UNREAD),
        Evasion("python-run", "python3 -c 'import subprocess; subprocess.run([\"curl\"])'", UNREAD),
        Evasion("python-here", "python3 - <<'E'\nimport os\nos.execvp('curl', ['x'])\nE", UNREAD),
        Evasion("python-execv", "python3 -c \"import os; os.execv('$BIN/curl', ['ls'])\"", BY_PATH),
        Evasion(
            "python-relative",
            "python3 -c \"import os; os.chdir('$BIN'); os.execl('curl', 'x')\"",
            BY_PATH,
        ),
        Evasion(
            "python-spawn",
            "python3 -c \"import os; os.waitpid(os.posix_spawn('$BIN/curl', ['x'], {}), 0)\"",
            BY_PATH,
        ),
        Evasion(
            "python-thread",
            "python3 - <<E\nimport os, threading\n"
            "threading.Thread(target=os.execv, args=('$BIN/curl', ['x'])).start()\nE",
            BY_PATH,
        ),
        Evasion(
            "python-new-session",
            "python3 -c \"import os; os.fork() and os.wait() or os.setsid() or os.execv('$BIN/curl', ['x'])\"",
            BY_PATH,
        ),
        Evasion("perl-exec", "perl -e 'exec \"curl\"'", UNREAD, needs=("perl",)),
        Evasion(
            "perl-renamed", 'perl -e \'exec { "$ENV{BIN}/curl" } "ls"\'', BY_PATH, needs=("perl",)
        ),
        Evasion("perl-backticks", "perl -e '`wget`; qx(true)'", UNREAD, "wget", needs=("perl",)),
        Evasion("awk-system", "awk 'BEGIN { system(\"curl\") }'", UNREAD, needs=("awk",)),
        Evasion("awk-pipe", "awk 'BEGIN { \"curl\" | getline x }'", UNREAD, needs=("awk",)),
        Evasion(
            "awk-program-file",
            "awk -f f",
            UNREAD,
            files={"f": 'BEGIN { print | "curl" }\n'},
            needs=("awk",),
        ),
        Evasion(
            "node", 'node -e \'require("child_process").execSync("curl")\'', UNREAD, needs=("node",)
        ),
        Evasion("tcl", "tclsh <<< 'exec curl'", UNREAD, needs=("tclsh",)),
        Evasion("dash", "dash -c 'c=curl; $c'", UNREAD, needs=("dash",)),
    ),
    "programs with commands of their own": (
        Evasion(
            "tar-checkpoint",
            "tar cf x.tar --checkpoint=1 --checkpoint-action=exec=curl f",
            UNREAD,
            files={"f": "a\n"},
            needs=("GNU tar",),
        ),
        Evasion("make", "make -sf f", UNREAD, files={"f": "all:\n\t@curl\n"}, needs=("make",)),
        Evasion("make-input", "printf 'x:;@wget' | make -sf -", UNREAD, "wget", needs=("make",)),
        Evasion(
            "make-function",
            "make -sf f",
            UNREAD,
            files={"f": "x := $(shell curl)\nall:\n"},
            needs=("make",),
        ),
        Evasion("make-eval", "make -s --eval='x:;@curl' x", UNREAD, needs=("make",)),
        Evasion(
            "make-shell",
            'make -sf f SHELL="$BIN/curl"',
            BY_PATH,
            files={"f": "all:\n\t@true;\n"},
            needs=("make",),
        ),
        Evasion("git-alias", "git -c alias.x='!curl' x", UNREAD, needs=("git",)),
        Evasion(
            "git-hook",
            "git init -q . && mkdir -p .git/hooks && mv f .git/hooks/pre-commit && "
            "git commit -q --allow-empty -m x",
            UNREAD,
            files={"f": RUNS_CURL},
            needs=("git",),
        ),
        Evasion(
            "git-editor",
            "git init -q . && GIT_EDITOR=curl git commit --allow-empty",
            UNREAD,
            needs=("git",),
        ),
        Evasion(
            "git-transport",
            "git -c protocol.ext.allow=always ls-remote 'ext::curl x'",
            UNREAD,
            needs=("git",),
        ),
        Evasion("git-ssh", "GIT_SSH_COMMAND=curl git ls-remote ssh://x/y", UNREAD, needs=("git",)),
        Evasion(
            "git-diff",
            "git init -q . && git add f && echo >> f && GIT_EXTERNAL_DIFF=curl git diff",
            UNREAD,
            files={"f": "a\n"},
            needs=("git",),
        ),
        Evasion(
            "tar-compressor",
            "tar cf x.tar -I curl f",
            UNREAD,
            files={"f": "a\n"},
            needs=("GNU tar",),
        ),
        Evasion(
            "tar-members",
            "tar cf x.tar f && tar xf x.tar --to-command=curl",
            UNREAD,
            files={"f": "a\n"},
            needs=("GNU tar",),
        ),
        Evasion("vim", "vim -u NONE -i NONE -es -c '!curl' -c 'qa!'", UNREAD, needs=("vim",)),
        Evasion("ed", "printf '!curl\\nq\\n' | ed -s", UNREAD, needs=("ed",)),
        Evasion(
            "less-opener",
            "LESSOPEN='|curl %s' less f | cat",
            UNREAD,
            files={"f": "a\n"},
            needs=("less",),
        ),
        Evasion(
            "ssh-proxy",
            "ssh -F none -o ProxyCommand=curl -o BatchMode=yes x",
            UNREAD,
            needs=("ssh",),
        ),
        Evasion("strace", "strace -o /dev/null curl", needs=("strace",)),
        Evasion(
            "start-stop-daemon",
            'start-stop-daemon -S -x "$BIN/curl"',
            BY_PATH,
            needs=("start-stop-daemon",),
        ),
    ),
    "system calls": (
        Evasion(
            "execveat-binary",
            "python3 -c \"import os; os.execve(os.open('$BIN/lynx', 0), ['x', '$BIN/record', 'lynx'], {})\"",
            BY_PATH,
            "lynx",
        ),
        Evasion(
            "fexecve",
            "python3 - <<E\nimport os\nf = os.open('$BIN/curl', 0)\nos.set_inheritable(f, True)\n"
            "os.execve(f, ['x'], {})\nE",
            BY_PATH,
        ),
        Evasion("execveat-folder", 'python3 f 9 curl 0 9< "$BIN"', BY_PATH, files={"f": EXECVEAT}),
        Evasion(
            "execveat-here",
            '(f=$PWD/f; cd "$BIN"; python3 "$f" -100 curl 0)',
            BY_PATH,
            files={"f": EXECVEAT},
        ),
        Evasion(
            "execveat-empty", "python3 f 9 '' 4096 9< \"$BIN/curl\"", BY_PATH, files={"f": EXECVEAT}
        ),
        Evasion(
            "execveat-path-only",
            "python3 - <<E\nimport os\nf = os.open('$BIN/lynx', os.O_PATH)\n"
            "os.execve(f, ['x', '$BIN/record', 'lynx'], {})\nE",
            BY_PATH,
            "lynx",
        ),
        Evasion("edge-of-memory", 'python3 f "$BIN/curl"', BY_PATH, files={"f": EDGE}),
        Evasion("unreadable-memory", 'python3 f "$BIN/curl"', BY_PATH, files={"f": UNDUMPABLE}),
        Evasion(
            "32-bit", 'python3 f "$BIN/curl"', BY_PATH, files={"f": IA32}, needs=("32-bit calls",)
        ),
        Evasion("x32", 'python3 f "$BIN/curl"', BY_PATH, files={"f": X32}, needs=("x32 calls",)),
    ),
    "loader and interpreter lines": (
        Evasion(
            "interpreter-line",
            'echo "#!$BIN/lynx" > f; cat "$BIN/record" >> f; chmod +x f; ./f lynx',
            BY_PATH,
            "lynx",
        ),
        Evasion(
            "loader",
            '"$LOADER" "$BIN/lynx" "$BIN/record" lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
        Evasion(
            "loader-option",
            '"$LOADER" --argv0 ls "$BIN/lynx" "$BIN/record" lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
        Evasion(
            "loader-library-path",
            '"$LOADER" --library-path /lib "$BIN/lynx" "$BIN/record" lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
        Evasion(
            "loader-link",
            'ln -s "$LOADER" ld; ./ld "$BIN"/ly?x "$BIN/record" lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
        Evasion(
            "loader-of-link",
            'ln -s "$BIN/lynx" x; "$LOADER" ./x "$BIN/record" lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
        Evasion(
            "interpreter-line-of-link",
            'ln -s "$BIN/lynx" x; (echo "#! $PWD/x -e"; cat "$BIN/record") > f; chmod +x f; ./f lynx',
            BY_PATH,
            "lynx",
        ),
        Evasion(
            "interpreter-line-nested",
            'printf "#!$BIN/curl\\n" > g; printf "#!$PWD/g\\n" > f; chmod +x f g; ./f',
            BY_PATH,
        ),
        Evasion(
            "interpreter-line-env", "printf '#!/usr/bin/env curl\\n' > f; chmod +x f; ./f", UNREAD
        ),
        Evasion(
            "interpreter-line-env-split",
            "printf '#!/usr/bin/env -S A=1 curl -s\\n' > f; chmod +x f; ./f",
            UNREAD,
            needs=("env -S",),
        ),
        Evasion(
            "interpreter-line-loader",
            '(echo "#!$LOADER $BIN/lynx"; cat "$BIN/record") > f; chmod +x f; ./f lynx',
            BY_PATH,
            "lynx",
            needs=("a loader",),
        ),
    ),
    "copies and other names": (
        Evasion("copy", 'cp "$BIN/curl" x; ./x', BY_ITSELF),
        Evasion("copy-by-cat", 'cat "$BIN/curl" > x; chmod +x x; ./x', BY_ITSELF),
        Evasion(
            "install", 'install -m 755 "$BIN/wget" x; ./x', BY_ITSELF, "wget", needs=("install",)
        ),
        Evasion("copy-in-path", 'cp "$BIN/nc" netz; PATH=.:$PATH netz', BY_ITSELF, "nc"),
        Evasion("hard-link", 'cp "$BIN/curl" y; ln y x; ./x', BY_ITSELF),
        Evasion("renamed", 'cp "$BIN/curl" curl; mv curl x; ./x', BY_ITSELF),
        Evasion(
            "removed",
            'cp "$BIN/curl" curl; exec 9< curl; rm curl; /proc/self/fd/9; exec 9<&-',
            BY_ITSELF,
        ),
        Evasion(
            "mounted",
            "touch x; unshare -rm sh -c 'mount --bind \"$BIN/curl\" x; ./x'",
            BY_ITSELF,
            needs=("namespaces",),
        ),
        Evasion(
            "memory-file",
            "python3 - <<E\nimport os\nf = os.memfd_create('x')\n"
            "os.write(f, open('$BIN/lynx', 'rb').read())\n"
            "os.execve(f, ['x', '$BIN/record', 'lynx'], {})\nE",
            BY_ITSELF,
            "lynx",
        ),
    ),
    "interpreters that do it themselves": (
        Evasion("dot-of-the-script", '. "$BIN/curl"', BY_ITSELF),
        Evasion("sh-of-the-script", 'sh "$BIN/curl"', BY_ITSELF),
        Evasion("sh-reads-the-script", 'sh < "$BIN/curl"', BY_ITSELF),
        Evasion("eval-of-the-script", 'eval "$(cat "$BIN/curl")"', BY_ITSELF),
        Evasion(
            "python-of-the-binarys-work",
            "python3 -m httpie x",
            BY_ITSELF,
            "httpie",
            files={"httpie.py": "import os\nos.system('$BIN/record httpie')\n"},
        ),
    ),
}

GIT = "git init -q . && "
CLAUDE = """git init -q . && git commit -q --allow-empty -m "$(cat <<'EOF'
fetch: use wget; curl was `too new`

curl $(wget) | nc
EOF
)" && git log --format=%s"""

INNOCENTS: dict[str, tuple[Innocent, ...]] = {
    "arguments": (
        Innocent("echo", "echo curl wget nc", "curl wget nc\n"),
        Innocent("echo-quoted", "echo 'curl http://x' \"wget y\"", "curl http://x wget y\n"),
        Innocent("printf", "printf '%s\\n' links lynx", "links\nlynx\n"),
        Innocent("no-op", ": curl; true wget; echo $?", "0\n"),
        Innocent("pattern", "grep -rn curl .", "./a.c:1:use curl\n", files={"a.c": "use curl\n"}),
        Innocent("patterns", "grep -cE 'curl|wget' f", "2\n", files={"f": "wget\ncurl\nnc\n"}),
        Innocent("no-match", "grep -q wget f", "", 1, files={"f": "a\n"}),
        Innocent("file-name", "cat links", "a\n", files={"links": "a\n"}),
        Innocent(
            "file-in-folder", "cat docs/links.md", "# Links\n", files={"docs/links.md": "# Links\n"}
        ),
        Innocent("sed", "sed s/curl/wget/ f", "use wget\n", files={"f": "use curl\n"}),
        Innocent("awk", "awk '/curl/ { print \"wget\" }' f", "wget\n", files={"f": "curl\n"}),
        Innocent("sort", "sort <<< $'wget\\ncurl\\nnc'", "curl\nnc\nwget\n"),
        Innocent("remove", "touch nc && rm -f nc curl && ls", ""),
        Innocent("folder", "mkdir links && cd links && echo ${PWD##*/} && cd ..", "links\n"),
        Innocent("link", "ln -s f links && cat links", "a\n", files={"f": "a\n"}),
        Innocent(
            "find-name", "find . -name curl -o -name 'wget*'", "./curl\n", files={"curl": "a\n"}
        ),
        Innocent("find-exec", "find . -name nc -exec cat {} +", "a\n", files={"nc": "a\n"}),
        Innocent(
            "find-exec-argument",
            "find . -type f -exec grep -l curl {} \\;",
            "./f\n",
            files={"f": "curl\n"},
        ),
        Innocent("xargs", "echo links | xargs cat", "a\n", files={"links": "a\n"}),
        Innocent("xargs-argument", "echo a | xargs echo curl", "curl a\n"),
        Innocent("xargs-placeholder", "echo a | xargs -I nc echo b nc", "b a\n"),
        Innocent(
            "xargs-file",
            "xargs -a links echo",
            "a b\n",
            files={"links": "a b\n"},
            needs=("GNU xargs",),
        ),
        Innocent("env-variable", "env curl=1 true && env nc= echo a", "a\n"),
        Innocent("env-unset", "env -u wget --unset=nc echo a", "a\n"),
        Innocent("env-argument", "env A=curl echo wget", "wget\n"),
        Innocent("nice-argument", "nice -n 5 echo curl", "curl\n"),
        Innocent("nohup-argument", "nohup echo nc", "nc\n"),
        Innocent("timeout-argument", "timeout --signal INT 5 echo wget", "wget\n"),
        Innocent("time-argument", "{ time -p echo curl; } 2>/dev/null", "curl\n"),
        Innocent("command-argument", "command echo curl; builtin echo wget", "curl\nwget\n"),
        Innocent("exec-argument", "(exec -a nc echo curl)", "curl\n"),
        Innocent(
            "exec-redirection", "exec 7> curl.log; echo a >&7; exec 7>&-; cat curl.log", "a\n"
        ),
        Innocent("sudo-user", "sudo -u links echo a", "a\n"),
        Innocent(
            "sudo-argument", "sudo apt-get install -y curl wget", "apt-get install -y curl wget\n"
        ),
        Innocent("sh-argument", "sh -c 'echo \"$1\"' x wget", "wget\n"),
        Innocent("sh-argument-zero", "bash -c 'echo $0' curl", "curl\n"),
        Innocent("sh-echo", "bash -c 'echo \"curl; wget\"'", "curl; wget\n"),
        Innocent("script-argument", "bash f curl", "curl\n", files={"f": "echo $1\n"}),
        Innocent("eval-argument", "eval 'echo curl'", "curl\n"),
        Innocent("eval-quoted", "eval \"echo 'a; curl'\"", "a; curl\n"),
        Innocent("trap-argument", "(trap 'echo curl' EXIT)", "curl\n"),
        Innocent("trap-reset", "trap - EXIT; trap '' USR1; trap - USR1; echo wget", "wget\n"),
        Innocent("function-argument", 'f() { echo "$@"; }; f curl wget; unset -f f', "curl wget\n"),
        Innocent("busybox-argument", "busybox echo curl", "echo curl\n"),
        Innocent(
            "coproc-name",
            "(coproc nc { cat; }; echo a >&${nc[1]}; read x <&${nc[0]}; exec {nc[1]}>&-; wait; echo $x)",
            "a\n",
        ),
    ),
    "quoted and escaped": (
        Innocent("semicolon", "echo 'a; curl' \"b; wget\" c\\; nc", "a; curl b; wget c; nc\n"),
        Innocent("pipe", "echo 'a | nc' \"b && curl\" c\\|\\| nc", "a | nc b && curl c|| nc\n"),
        Innocent("newline", "echo 'a\ncurl\nwget x'", "a\ncurl\nwget x\n"),
        Innocent("continued", "echo a \\\ncurl \\\n  wget", "a curl wget\n"),
        Innocent(
            "substitution", "echo '$(curl)' \"\\$(wget)\" \\$\\(nc\\)", "$(curl) $(wget) $(nc)\n"
        ),
        Innocent("backticks", "echo '`curl`' \"\\`wget\\`\"", "`curl` `wget`\n"),
        Innocent("ansi", "echo $'a\\ncurl\\x3b'", "a\ncurl;\n"),
        Innocent("comment", "echo a # curl; wget\n# $(curl) `wget` 'nc\necho b#; wait", "a\nb#\n"),
        Innocent("hash-in-word", "echo a#b; echo ${#nothing} curl", "a#b\n0 curl\n"),
        Innocent("braces", "echo {curl,wget} {nc,links}x", "curl wget ncx linksx\n"),
        Innocent("glob", "echo c*l ./w*", "curl ./wget\n", files={"curl": "", "wget": ""}),
        Innocent("parentheses", "echo '(curl)' \"{ wget; }\" \\(nc\\)", "(curl) { wget; } (nc)\n"),
    ),
    "here-documents": (
        Innocent("here-document", "cat <<E\ncurl x\nwget\nE", "curl x\nwget\n"),
        Innocent("quoted", "cat <<'E'\n$(curl)\n`wget`\nE", "$(curl)\n`wget`\n"),
        Innocent("escaped", "cat <<E\n\\$(curl) \\`nc\\`\nE", "$(curl) `nc`\n"),
        Innocent("tabs", "cat <<-E\n\tcurl\n\tE", "curl\n"),
        Innocent("delimiter", "cat <<nc\na\nnc", "a\n"),
        Innocent("quoted-delimiter", "cat <<'curl' | tr a b\na\ncurl", "b\n"),
        Innocent("two", "cat <<A; cat <<B\ncurl\nA\nwget\nB", "curl\nwget\n"),
        Innocent("inside-substitution", 'echo "$(cat <<E\ncurl\nE\n)"', "curl\n"),
        Innocent("here-string", "cat <<< curl; cat <<< 'wget; nc'", "curl\nwget; nc\n"),
        Innocent(
            "script-only-written",
            "cat > f <<'E'\n#!/bin/sh\ncurl x | sh\nE\nwc -l < f | tr -d ' '",
            "2\n",
        ),
        Innocent("program-of-python", "python3 - <<'E'\nprint('curl')\nwget = 1\nE", "curl\n"),
        Innocent("input-of-shell", "sh <<'E'\necho curl\nE", "curl\n"),
        Innocent("commit-message", CLAUDE, "fetch: use wget; curl was `too new`\n", needs=("git",)),
    ),
    "variables and functions": (
        Innocent("assignment", "nc=5; echo $nc", "5\n"),
        Innocent("assignments", "curl=a wget=b; echo $curl${wget}", "ab\n"),
        Innocent("assignment-before", "curl=x true; links= true; echo a", "a\n"),
        Innocent("value", "x=curl; echo $x ${x:-wget}", "curl curl\n"),
        Innocent("default", "echo ${nothing:-curl} ${nothing-wget -q}", "curl wget -q\n"),
        Innocent(
            "array",
            "links=(curl wget); links+=(nc); echo ${links[2]} ${#links[@]}; unset links",
            "nc 3\n",
        ),
        Innocent("array-lines", "x=(\ncurl\nwget # nc\n)\necho ${x[1]}; unset x", "wget\n"),
        Innocent(
            "associative", "declare -A m=([curl]=1 [wget]=nc); echo ${m[wget]}; unset m", "nc\n"
        ),
        Innocent("subscript", "declare -A by; by[curl]=1; echo ${by[curl]}; unset by", "1\n"),
        Innocent(
            "export", "export nc=1 curl; declare -x wget=2; echo $wget; unset nc curl wget", "2\n"
        ),
        Innocent("read", "read -r nc links <<< 'a b'; echo $links", "b\n"),
        Innocent("loop-variable", "for nc in 1 2; do echo $nc; done", "1\n2\n"),
        Innocent("loop-words", "for t in curl wget; do echo $t; done", "curl\nwget\n"),
        Innocent(
            "while-read",
            "printf 'curl\\nnc\\n' | while read -r links; do echo \"$links\"; done",
            "curl\nnc\n",
        ),
        Innocent(
            "select-variable",
            "select links in curl; do echo $links; break; done 2>/dev/null <<< 1",
            "curl\n",
        ),
        Innocent(
            "arithmetic",
            "nc=2; echo $((nc * 2)); ((links = 3, links > 2)) && echo $links",
            "4\n3\n",
        ),
        Innocent("let", "let nc=2+3; echo $nc", "5\n"),
        Innocent("local", "f() { local links=$1 nc; echo $links; }; f curl; unset -f f", "curl\n"),
        Innocent(
            "similar-function", "get_links() { echo a; }; get_links; unset -f get_links", "a\n"
        ),
        Innocent("other-case", "CURL() { echo a; }; CURL; unset -f CURL", "a\n"),
        Innocent("printf-variable", "printf -v curl %s a; echo $curl", "a\n"),
        Innocent("exported-to-child", "nc=7 bash -c 'echo $nc'", "7\n"),
        Innocent(
            "reference",
            "curl=a; declare -n wget=curl; echo $wget; unset -n wget; unset curl",
            "a\n",
        ),
    ),
    "conditions and patterns": (
        Innocent("case-pattern", "case wget in curl|wget) echo a;; (nc) echo b;; esac", "a\n"),
        Innocent(
            "case-word", "case curl in\n  curl )\n echo a ;;\n  wget|\\\n  nc) ;;\nesac", "a\n"
        ),
        Innocent("case-glob", "case links in l*s) echo $((1 + 1)) ;; *) ;; esac", "2\n"),
        Innocent("test", "[ curl = curl ] && test -n wget && echo a", "a\n"),
        Innocent("double-test", "x=curl; [[ $x == curl || nc == x ]] && echo a", "a\n"),
        Innocent("match", "[[ curl =~ ^(curl|wget)$ ]] && echo ${BASH_REMATCH[1]}", "curl\n"),
        Innocent("test-lines", "[[ a == b ||\n curl == curl &&\n ( nc < wget ) ]]; echo $?", "0\n"),
        Innocent("file-test", "test -e links || [ -f nc ] || echo a", "a\n"),
    ),
    "redirections": (
        Innocent("to", "echo a > nc; cat < nc", "a\n"),
        Innocent("first", "> curl.txt echo wget; cat curl.txt", "wget\n"),
        Innocent("name-first", ">nc <links cat; cat nc", "a\n", files={"links": "a\n"}),
        Innocent("both", "echo a &> wget; echo b &>> wget; cat wget", "a\nb\n"),
        Innocent("append", "echo a >>links 2>&1; cat links", "a\n"),
        Innocent("tee", "echo a | tee curl > /dev/null; cat curl", "a\n"),
        Innocent("process", "diff <(echo curl) <(echo curl) && echo same", "same\n"),
        Innocent("descriptor-variable", "exec {nc}>f; echo a >&$nc; exec {nc}>&-; cat f", "a\n"),
    ),
    "asking about a program": (
        Innocent("command-v", "command -v curl >/dev/null && echo have", "have\n"),
        Innocent(
            "if-command-v", "if command -v wget > /dev/null 2>&1; then echo have; fi", "have\n"
        ),
        Innocent("command-verbose", "command -V nc >/dev/null && echo have", "have\n"),
        Innocent("type", "type nc >/dev/null; echo $?", "0\n"),
        Innocent("type-path", "type -P curl >/dev/null && echo have", "have\n"),
        Innocent("which", "which wget >/dev/null || true; echo $?", "0\n"),
        Innocent("which-missing", "which curlie9 || echo none", "none\n"),
        Innocent("hash", "hash curl 2>/dev/null || true; hash -d curl 2>/dev/null; echo a", "a\n"),
        Innocent(
            "help-of-alias", "type -t alias >/dev/null; compgen -a alias >/dev/null; echo a", "a\n"
        ),
        Innocent("unalias", "unalias -a; unalias ll 2>/dev/null; echo a", "a\n"),
        Innocent("list", "ls \"$BIN/curl\" | wc -l | tr -d ' '", "1\n"),
        Innocent("file-kind", 'head -n 1 "$BIN/wget"; test -x "$BIN/nc"', "#!/bin/sh\n"),
        Innocent("processes", "pgrep -x curl9 || echo none", "none\n", needs=("pgrep",)),
    ),
    "other programs' words": (
        Innocent(
            "git-commit",
            GIT + "git commit -q --allow-empty -m 'use wget' && git log --format=%s",
            "use wget\n",
            needs=("git",),
        ),
        Innocent(
            "git-branch",
            GIT + "git checkout -q -b curl-fix && git symbolic-ref --short HEAD",
            "curl-fix\n",
            needs=("git",),
        ),
        Innocent(
            "git-add",
            GIT + "git add links && git ls-files",
            "links\n",
            files={"links": "a\n"},
            needs=("git",),
        ),
        Innocent(
            "git-grep",
            GIT + "git add f && git grep wget",
            "f:wget\n",
            files={"f": "wget\n"},
            needs=("git",),
        ),
        Innocent(
            "git-log",
            GIT + "git commit -q --allow-empty -m 'no nc' && git log --grep=nc --format=%s -- ",
            "no nc\n",
            needs=("git",),
        ),
        Innocent(
            "git-config",
            GIT + "git config alias.co checkout && git config alias.co",
            "checkout\n",
            needs=("git",),
        ),
        Innocent(
            "git-tag",
            GIT + "git commit -q --allow-empty -m x && git tag curl && git tag",
            "curl\n",
            needs=("git",),
        ),
        Innocent("npm-run", "npm run links", "npm run links\n"),
        Innocent(
            "npm-install",
            "npm install --save-dev chrome links && npm test -- curl",
            "npm install --save-dev chrome links\nnpm test -- curl\n",
        ),
        Innocent("pip", "pip install httpie http-prompt", "pip install httpie http-prompt\n"),
        Innocent("docker", "docker run --rm curl curl -s x", "docker run --rm curl curl -s x\n"),
        Innocent("remote", "kubectl exec pod -- curl x", "kubectl exec pod -- curl x\n"),
        Innocent(
            "make-target",
            "make -s links",
            "curl\n",
            files={"Makefile": "links:\n\t@echo curl\n"},
            needs=("make",),
        ),
        Innocent(
            "make-variable",
            "make -s nc=1 wget",
            "1\n",
            files={"Makefile": "wget:\n\t@echo $(nc)\n"},
            needs=("make",),
        ),
        Innocent(
            "make-dry",
            "make -n links",
            "curl x\n",
            files={"Makefile": "links:\n\tcurl x\n"},
            needs=("make",),
        ),
        Innocent("python-print", "python3 -c \"print('wget')\"", "wget\n"),
        Innocent(
            "python-code",
            "python3 -c 'import sys; nc = sys.argv[1]; print(nc); curl = \"curl; wget\"' links",
            "links\n",
        ),
        Innocent("python-module", "python3 -m links", "a\n", files={"links.py": "print('a')\n"}),
        Innocent("python-script", "python3 curl.py", "a\n", files={"curl.py": "print('a')\n"}),
        Innocent("perl", "perl -e 'print \"curl\\n\"'", "curl\n", needs=("perl",)),
        Innocent(
            "tar",
            "tar cf links.tar nc && tar tf links.tar",
            "nc\n",
            files={"nc": "a\n"},
            needs=("tar",),
        ),
    ),
    "names that are like one": (
        Innocent(
            "suffix", "./curl-config --libs", "a\n", files={"curl-config": "#!/bin/sh\necho a\n"}
        ),
        Innocent(
            "script-name",
            "./links.sh; sh nc.sh; bash ./wget.sh",
            "a\nb\nc\n",
            files={"links.sh": "#!/bin/sh\necho a\n", "nc.sh": "echo b\n", "wget.sh": "echo c\n"},
        ),
        Innocent(
            "prefix",
            "./mycurl; ./ncdu",
            "a\nb\n",
            files={"mycurl": "#!/bin/sh\necho a\n", "ncdu": "#!/bin/sh\necho b\n"},
        ),
        Innocent(
            "in-chrome",
            "./opt/google/chrome/run --version",
            "a\n",
            files={"opt/google/chrome/run": "#!/bin/sh\necho a\n"},
        ),
        Innocent(
            "in-folder",
            "cd curl && ./build && cd ..",
            "a\n",
            files={"curl/build": "#!/bin/sh\necho a\n"},
        ),
        Innocent(
            "linked", "ln -s chrome/run a; ./a", "b\n", files={"chrome/run": "#!/bin/sh\necho b\n"}
        ),
        Innocent(
            "interpreter-in-folder",
            'ln -s /bin/sh curl/sh; printf "#!$PWD/curl/sh\\necho a\\n" > f; chmod +x f; ./f',
            "a\n",
            files={"curl/x": ""},
        ),
        Innocent(
            "sourced",
            ". ./links.sh; source ./nc.env; echo $x",
            "a\n",
            files={"links.sh": "x=a\n", "nc.env": "y=b\n"},
        ),
        Innocent(
            "path-with-name",
            "PATH=$PWD/chrome:$PATH; run; PATH=${PATH#*:}",
            "a\n",
            files={"chrome/run": "#!/bin/sh\necho a\n"},
        ),
        Innocent("argument-zero", "bash -c 'exec -a curl sleep 0'; echo $?", "0\n"),
        Innocent("upper-case", "./CURL", "a\n", files={"CURL": "#!/bin/sh\necho a\n"}),
    ),
    "what shells are used for": (
        Innocent("failing", "false", "", 1),
        Innocent("missing", "nosuchprogram 2>/dev/null", "", 127),
        Innocent("not-executable", "mkdir f; ./f 2>/dev/null", "", 126),
        Innocent("pipeline", "printf 'b\\na\\n' | sort | head -n 1 | tr a-z A-Z", "A\n"),
        Innocent("background", "(sleep 0.01 & wait $!; echo $?)", "0\n"),
        Innocent(
            "many-programs",
            "for i in 1 2 3 4 5 6 7 8; do /bin/echo $i; done | wc -l | tr -d ' '",
            "8\n",
        ),
        Innocent(
            "vfork",
            "python3 -c \"import subprocess; subprocess.run(['echo', 'nc'])\"",
            "nc\n",
        ),
        Innocent("edge-of-memory", "python3 f /bin/echo a", "a\n", files={"f": EDGE}),
        Innocent("namespace", "unshare -rm sh -c '/bin/echo a'", "a\n", needs=("namespaces",)),
        Innocent("cleared", "env -i /bin/sh -c '/bin/echo a'", "a\n"),
        Innocent(
            "shell-options", "set -u; set +u; shopt -s nullglob; echo *.x; shopt -u nullglob", "\n"
        ),
        Innocent("persistent", "f() { echo kept; }\nf", "kept\n"),
        Innocent("umask-and-dirs", "(umask 077; pushd / >/dev/null; pwd; popd >/dev/null)", "/\n"),
    ),
}
