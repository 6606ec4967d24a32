"""The run-time layer of the policy where the kernel has none, in bash and on PATH; best effort.

Three things in the shell: a folder of refusing programs first on PATH, readonly functions of banned
names, and a trap on DEBUG that looks at the first word of each command once it is expanded.  Programs
started by path from other programs pass, and so does all behind a PATH of one's own.  The trap is set
anew for each call, so a DEBUG trap of the user's holds for the rest of its call.  Written for bash 3.2.
Also what every mode asks of bash: that banned builtins are none.
"""

import os

from toolroll_bash.policy import BUILTINS
from toolroll_bash.shell import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolroll_bash.policy import Policy

NEEDED = frozenset(("eval", "exit", "set", "trap", "unalias"))
"""Builtins that our own lines use: a ban of these is for the other layers."""

NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+@")
"""What a function's name may be made of, and stand unquoted."""


def builtins(policy: "Policy") -> tuple[str, str]:
    """What bash is to be told at its start and after each call, so that no banned builtin is one."""
    gone = sorted((policy.banned & BUILTINS) - NEEDED)
    if not gone:
        return "", ""
    return f"enable -n {' '.join(gone)}; ", "unalias -a; " if "alias" in gone else ""


def shell(policy: "Policy", folder: str, stopped: str) -> tuple[str, str]:
    """The same for shims, whose programs are put into a new folder; `stopped` is a FIFO for names."""
    os.mkdir(folder, 0o700)
    refusal = _refusal(policy, stopped)
    program = os.path.join(folder, ".refuse")
    fd = os.open(program, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nset -- "${{0##*/}}"\n{refusal}\nexit 126\n')
    for name in filter(_is_file_name, policy.banned):
        os.symlink(program, os.path.join(folder, name))
    for name in policy.only or ():
        if path := _which(name):
            os.symlink(path, os.path.join(folder, name))
    path = quoted(folder) + ("" if policy.only is not None else ":$PATH")
    return (
        f"_toolroll_refuse() {{\n{refusal}\nreturn 126\n}}\n"
        f"{''.join(map(_function, sorted(filter(_is_name, policy.banned))))}"
        f"_toolroll_banned={_list(policy.banned)} _toolroll_only={_list(policy.only or ())}\n"
        f"_toolroll_files=({' '.join(quoted(path) for path in map(_which, policy.banned) if path)})\n"
        f"_toolroll_known=/ _toolroll_path=\n{JUDGE}"
        f"readonly -f _toolroll_refuse _toolroll_judge\nexport PATH={path}\n",
        """set -T; trap '_toolroll_judge "$BASH_COMMAND" "$_"' DEBUG; """,
    )


def _refusal(policy: "Policy", stopped: str) -> str:
    """Commands of any shell that refuse the program named by `$1`."""
    before, _, behind = policy.advice("\0").partition("\0")
    words = quoted(f" may not be run here. {before}") + '"$1"' + quoted(behind)
    return f"""printf '%s%s.\\n' "$1" {words} >&2\nprintf '%s\\n' "$1" >{quoted(stopped)}"""


def _function(name: str) -> str:
    return f"function {name} {{ _toolroll_refuse {name}; }}; readonly -f {name}\n"


def _is_name(name: str) -> bool:
    return NAME.issuperset(name) and _is_file_name(name) and not name.startswith("-")


def _is_file_name(name: str) -> bool:
    return bool(name.strip("."))


def _list(names: "Iterable[str]") -> str:
    """The names between slashes, which no name holds."""
    return quoted("/".join(("", *sorted(names), "")))


def _which(name: str) -> str:
    from shutil import which

    return which(name) or ""


JUDGE = r"""
_toolroll_judge() {
  local _toolroll_text=${1:0:4096}
  local _toolroll_word=${_toolroll_text%%[[:space:]]*}
  [[ $_toolroll_path == "$PATH" ]] || { _toolroll_known=/ _toolroll_path=$PATH; }
  case $_toolroll_word in
    */*) ;;
    *) case $_toolroll_known in */"$_toolroll_word"/*) return 0 ;; esac ;;
  esac
  local _toolroll_by= _toolroll_name= _toolroll_file= _toolroll_rest=
  _toolroll_skip || return 0
  _toolroll_expand || return 0
  case $_toolroll_by$_toolroll_name in
    command | builtin | exec)
      _toolroll_text="${_toolroll_name[*]} ${_toolroll_text#"$_toolroll_word"}"
      _toolroll_skip || return 0
      _toolroll_expand || return 0 ;;
  esac
  case $_toolroll_banned in
    */"${_toolroll_name##*/}"/*) _toolroll_stop "${_toolroll_name##*/}"; return 0 ;;
  esac
  case $_toolroll_name in
    */*)
      [[ $_toolroll_only == / || $_toolroll_only == */"${_toolroll_name##*/}"/* ]] ||
        { _toolroll_stop "${_toolroll_name##*/}"; return 0; }
      _toolroll_file=$_toolroll_name ;;
    hash) _toolroll_known=/; return 0 ;;
    *) _toolroll_find ;;
  esac
  for _toolroll_rest in ${_toolroll_files[@]+"${_toolroll_files[@]}"}; do
    if [[ $_toolroll_file && $_toolroll_file -ef $_toolroll_rest ]]; then
      _toolroll_stop "${_toolroll_rest##*/}"
      return 0
    fi
  done
  case $_toolroll_by$_toolroll_name in
    */*) ;;
    "$_toolroll_word") _toolroll_known=$_toolroll_known$_toolroll_name/ ;;
  esac
}
_toolroll_skip() {
  while :; do
    _toolroll_word=${_toolroll_text%%[[:space:]]*}
    case $_toolroll_word in
      command | builtin | exec) _toolroll_by=$_toolroll_word ;;
      -a) [[ $_toolroll_by ]] || return 1; _toolroll_text=${_toolroll_text#*[[:space:]]} ;;
      -*[vV]*) return 1 ;;
      -*) [[ $_toolroll_by ]] || return 1 ;;
      [A-Za-z_]*=*)
        case ${_toolroll_word%%=*} in *[!A-Za-z0-9_]*) return 0 ;; esac
        case $_toolroll_word in *[\"\'\\\(\`]*) return 1 ;; esac ;;
      ?*) return 0 ;;
    esac
    case $_toolroll_text in
      *[[:space:]]*) _toolroll_text=${_toolroll_text#*[[:space:]]} ;;
      *) return 1 ;;
    esac
  done
}
_toolroll_expand() {
  _toolroll_name=$_toolroll_word
  case $_toolroll_word in
    *[\`\(\)\<\>\;\&\|]* | *'$['* | *'${'*'${'*) return 1 ;;
    *'${'*)
      _toolroll_rest=${_toolroll_word#*\$\{}
      case ${_toolroll_rest%%\}*} in *[!A-Za-z0-9_]* | '') return 1 ;; esac ;;
  esac
  case $_toolroll_word in
    *[!A-Za-z0-9_./+-]*) eval "_toolroll_name=($_toolroll_word)" 2>/dev/null || return 1 ;;
  esac
  [[ ${_toolroll_name-} ]]
}
_toolroll_find() {
  _toolroll_file=
  if [[ ${BASH_VERSINFO[0]} -ge 4 ]]; then
    _toolroll_file=${BASH_CMDS[$_toolroll_name]-}
    [[ -z $_toolroll_file ]] || return 0
  fi
  _toolroll_rest=$PATH:
  while [[ $_toolroll_rest ]]; do
    _toolroll_file=${_toolroll_rest%%:*}/$_toolroll_name
    [[ ! -x $_toolroll_file ]] || return 0
    _toolroll_rest=${_toolroll_rest#*:}
  done
  _toolroll_file=
}
_toolroll_stop() {
  if [[ $_toolroll_by ]]; then
    eval "$_toolroll_by() { unset -f $_toolroll_by; _toolroll_refuse '${1//\'/}'; }"
    return 0
  fi
  case $_toolroll_name in
    "$1" | *[!A-Za-z0-9_./+@-]*) return 0 ;;
    *) eval "function $_toolroll_name { unset -f $_toolroll_name; _toolroll_refuse '${1//\'/}'; }" ;;
  esac
}
readonly -f _toolroll_skip _toolroll_expand _toolroll_find _toolroll_stop
"""
"""Judges `$1`, a command as it is written; `$2` is left as `$_`.

A word is expanded only where that can have no effect.  What is to be stopped is covered by a function
of the very name that bash is about to look up, so that it fails with 126 as it would by the other
layers.  Nothing in here starts a process, and nothing fails, as the user may have set -e.
"""
