"""Plausible values of options and operands, by program."""

from __future__ import annotations

Operands = list[list[str]]


def _each(programs: str, operands: Operands) -> dict[str, Operands]:
    return dict.fromkeys(programs.split(), operands)


_TEXT = [["a.txt"], ["a.txt", "b.txt"], []]
_TWO = [["a.txt", "b.txt"]]
_ELF = [["program"]]

OPERANDS: dict[str, Operands] = {
    **_each(
        "cat head tail wc tac rev nl stat file cut fold fmt expand unexpand column pr od hexdump "
        "base64 base32 md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum "
        "shasum paste sort shuf readlink realpath lsattr getfattr getfacl hd ",
        _TEXT,
    ),
    **_each("diff cmp comm join", _TWO),
    **_each("nm size readelf objdump", _ELF),
    "diff": [["a.txt", "b.txt"], ["d1", "d2"]],
    "strings": [["program"], ["a.txt"]],
    "ls": [[], ["d1"], ["a.txt", "src"]],
    "du": [["d1"], []],
    "df": [[], ["."]],
    "tree": [["d1"], []],
    "uniq": [["a.txt"], []],
    "xxd": [["a.txt"]],
    "tr": [["a", "b"]],
    "basename": [["a/b.txt"]],
    "dirname": [["a/b.txt"]],
    **_each("grep egrep fgrep", [["one", "a.txt"], ["x", "src"]]),
    "rg": [["one", "a.txt"], ["x"]],
    "fd": [["txt"], ["c", "src"]],
    "fdfind": [["txt"]],
    "jq": [[".a", "data.json"], [".", "data.json"]],
    "sed": [["1p", "a.txt"], ["s/one/1/", "a.txt"]],
    **_each("awk gawk mawk nawk", [["{print $1}", "a.txt"], ["BEGIN{print 1}"]]),
    "bc": [["n.txt"], []],
    **_each("zcat gzcat gunzip gzip", [["f.gz"]]),
    "bzcat": [["f.bz2"]],
    "bunzip2": [["f.bz2"]],
    "bzip2": [["f.bz2"]],
    "xzcat": [["f.xz"]],
    "unxz": [["f.xz"]],
    "xz": [["f.xz"]],
    "zstdcat": [["f.zst"]],
    "lz4cat": [["f.lz4"]],
    **_each("unzip zipinfo", [["t.zip"]]),
    "date": [["+%s"], []],
    "seq": [["3"], ["1", "2", "5"]],
    "sleep": [["0"]],
    "factor": [["12"]],
    "numfmt": [["1000"]],
    **_each("which type whereis", [["ls"]]),
    "help": [["cd"]],
    "pgrep": [["bash"]],
    "pidof": [["bash"]],
    "id": [[], ["root"]],
    "groups": [[], ["root"]],
    "locale": [[], ["LC_TIME"]],
    "getconf": [["PATH"], ["ARG_MAX"]],
    "tsort": [["n.txt"]],
    "ptx": [["a.txt"]],
    "look": [["one", "a.txt"]],
    "getopt": [["ab", "a"], ["-o", "ab", "--", "-a"]],
    "whatis": [["ls"]],
    "xargs": [[]],
    **_each("pip pip3", [["list"], ["freeze"], ["show", "pip"], ["check"]]),
    "git fsck": [[]],
    "git check-ref-format": [["refs/heads/main"], ["--branch", "main"]],
    "git check-mailmap": [["A <a@b>"]],
    "git help": [["-a"], ["-g"], ["-c"]],
    "git clean": [["-n"]],
    "git var": [["GIT_AUTHOR_IDENT"], ["GIT_EDITOR"]],
    "vmstat": [[], ["1", "1"]],
    "git log": [["HEAD"], ["--", "a.txt"], []],
    "git show": [["HEAD"], ["HEAD:a.txt"]],
    "git diff": [["HEAD~1"], [], ["--no-index", "a.txt", "b.txt"]],
    "git diff-tree": [["HEAD"]],
    "git diff-index": [["HEAD"]],
    "git blame": [["a.txt"]],
    "git annotate": [["a.txt"]],
    "git branch": [[], ["--list", "m*"]],
    "git tag": [[], ["-l", "v*"]],
    "git remote": [["get-url", "origin"], ["-v"], []],
    "git stash": [["list"], ["show"]],
    "git worktree": [["list"]],
    "git notes": [["list"]],
    "git reflog": [[], ["show", "HEAD"]],
    "git grep": [["one"], ["one", "--", "a.txt"]],
    "git cat-file": [["-p", "HEAD"]],
    "git ls-tree": [["HEAD"]],
    "git merge-base": [["HEAD", "other"]],
    "git range-diff": [["other..HEAD", "other..HEAD"]],
    "git config": [["--get", "user.name"], ["--get-all", "user.name"]],
    "git symbolic-ref": [["HEAD"]],
    "git check-ignore": [["a.txt"]],
    "git check-attr": [["-a", "a.txt"]],
    "git name-rev": [["HEAD"], ["--all"], ["--annotate-stdin"], ["--stdin"]],
    "git rev-list": [["HEAD"]],
    "git rev-parse": [["HEAD"], []],
    "git show-ref": [[], ["v1"]],
    "git cherry": [["other"]],
    "git shortlog": [["HEAD"]],
    "git describe": [[], ["HEAD"]],
    "git whatchanged": [["HEAD"]],
}
"""Operands that a program is given, the first for each of its options."""

FORMS: dict[str, Operands] = {
    "echo": [["a"], ["-n", "a"], ["-e", "a\\n"]],
    "printf": [["%s\\n", "a"], ["%d", "1"]],
    "test": [["-f", "a.txt"], ["a", "=", "b"], ["1", "-lt", "2"], ["-d", "d1"], ["!", "-e", "x"]],
    "[": [["-f", "a.txt", "]"], ["a", "=", "b", "]"]],
    "expr": [["1", "+", "2"], ["length", "abc"]],
    "cd": [["d1"], ["--", "d1"]],
    "command": [["-v", "ls"], ["-V", "ls"]],
    "set": [["-e"], ["-euo", "pipefail"]],
    "read": [["-r", "line"]],
    "ps": [["aux"], ["-ef"], ["-e", "-o", "pid,comm"], ["-p", "1"], ["-eo", "pid"], ["-u", "root"], ["-C", "bash"],
           ["--sort=pid"], ["--no-headers"], ["--forest"], ["-axo", "pid"], ["-fp", "1"], ["auxf"], ["-eLf"]],
    "tar": [["-tf", "t.tar"], ["tf", "t.tar"], ["tvf", "t.tar"], ["-tzf", "t.tar.gz"], ["--list", "--file=t.tar"], ["-tvf", "t.tar", "a.txt"]],
    "find": [["."], ["d1", "d2", "-name", "*.txt"], [".", "!", "-name", "x"], [".", "(", "-name", "a", "-o", "-name", "b", ")"], ["-H", "."],
             [".", "-newer", "a.txt"], [".", "-samefile", "a.txt"], [".", "-newermt", "2020-01-01"], [".", "-name", "a", ",", "-name", "b"]],
    "jq": [["-n", "--arg", "a", "1", "$a"], ["-n", "--argjson", "a", "1", "$a"]],
    "xxd": [["-cols", "8", "a.txt"], ["-len", "4", "a.txt"], ["-postscript", "a.txt"], ["-r", "-p"], ["-r"]],
    "shuf": [["-r", "-n", "2", "a.txt"], ["--repeat", "-n", "2", "a.txt"], ["-i", "1-3"], ["--input-range=1-3"]],
    "free": [["-s", "1", "-c", "1"]],
    "tree": [["--fromfile"]],
    "rg": [["--type-list"], ["--files"]],
    "awk": [["--version"]],
    "npm": [["ls"], ["ls", "--depth", "0"], ["list", "--all"]],
    **_each("pip pip3", [["freeze", "--all"], ["show", "-f", "pip"], ["show", "--files", "pip"]]),
}  # fmt: skip
"""Commands of programs whose arguments do not fit an option table."""

_NUMBERS = ["1", "2"]
_BY_OPTION: dict[str, list[str]] = {
    "color": ["never", "always"], "colour": ["never"], "sort": ["name", "path", "size", "version:refname", "numeric"],
    "time": ["atime", "access"], "time-style": ["iso"], "format": ["%n", "long", "x", "%h", "reference", "hex"], "printf": ["%n"],
    "block-size": ["1K"], "quoting-style": ["shell"], "indicator-style": ["slash"], "hyperlink": ["never"], "classify": ["never"],
    "type": ["f", "py", "ext4"], "t": ["f", "py", "x", "d1", ","], "T": ["8", "py"], "extension": ["txt"], "e": ["txt", "x", "s", "soft"],
    "directories": ["skip"], "binary-files": ["text"], "devices": ["skip"], "d": ["1", ",", "skip", "yesterday"], "D": ["skip", "%Y"],
    "total": ["always"], "follow": ["name"], "pid": ["1"], "address-radix": ["x"], "A": ["x", "1"], "endian": ["little"],
    "algorithm": ["md5"], "a": ["1", "md5", "256"], "check": ["quiet"], "all-repeated": ["none"], "group": ["none", "author"],
    "key": ["1"], "k": ["1"], "field-separator": [","], "delimiter": [","], "delimiters": [","], "separator": [","],
    "date": ["iso", "yesterday"], "iso-8601": ["date"], "rfc-3339": ["date"], "I": ["date", "*.o", "1"], "from": ["si"], "to": ["iec"],
    "round": ["up"], "invalid": ["ignore"], "encoding": ["s", "utf-8"], "radix": ["x"], "charset": ["utf-8"], "level": ["err"], "l": ["10", "err"],
    "facility": ["kern"], "f": ["1", "%g", "kern"], "time-format": ["iso"], "output": ["source", "NAME"], "o": ["1", "pid", "NAME", "1.1"],
    "engine": ["default"], "sortr": ["path"], "colors": ["match:none"], "size": ["+1k"], "S": ["+1k", "one", "3"], "owner": ["root"],
    "changed-within": ["1d"], "changed-before": ["1d"], "relative-to": ["d1"], "relative-base": ["d1"], "r": ["a.txt", "x"], "reference": ["a.txt"],
    "dictionary": ["a"], "pretty": ["oneline", "%h"], "porcelain": ["v1", "v2"], "untracked-files": ["no"], "u": ["no", "root"], "ignored": ["matching"],
    "ignore-submodules": ["all"], "column": ["always"], "find-renames": ["50"], "diff-algorithm": ["patience"], "diff-filter": ["M"], "word-diff": ["plain"],
    "color-moved": ["zebra"], "since": ["yesterday"], "until": ["now"], "diff-merges": ["off"], "ws-error-highlight": ["all"], "decorate": ["short"],
    "points-at": ["HEAD"], "contains": ["HEAD"], "no-contains": ["HEAD"], "merged": ["HEAD"], "no-merged": ["HEAD"], "L": ["1,2:a.txt", "1,2", "1"],
    "ignore-rev": ["HEAD"], "with-tree": ["HEAD"], "find-object": ["HEAD:a.txt"], "rotate-to": ["a.txt"], "skip-to": ["a.txt"], "abbrev-ref": ["strict"],
    "show-object-format": ["storage"], "stat": ["80"], "dirstat": ["files"], "i": ["1-3", "1", ":"], "input-range": ["1-3"], "m": ["1", "-"], "n": ["1", "user.name"],
    "indent": ["2"], "body-numbering": ["a"], "b": ["a", "1"], "number-format": ["ln"], "section-delimiter": [":"], "palette": [":"], "unicode": ["hex"],
    "target": ["elf64-x86-64"], "glob": ["*.py"], "g": ["*.py", "2", "root"], "iglob": ["*.py"], "F": [":", "x"], "M": ["100", "intel", "50"], "j": ["1", ".text"],
    "section": [".text"], "expression": ["1p"], "regexp": ["one"], "replace": ["x"], "type-add": ["x:*.x"], "type-clear": ["py"], "max-filesize": ["1M"],
    "fields": ["1"], "output-width": ["80"], "table-columns": ["a,b"], "table-name": ["x"], "E": ["utf-8", "*.o", "k", "1"], "P": ["*.txt", "bytes=1048576", "1"],
    "parameter": ["bytes=1048576"], "exclude": ["*.o", "ascii"], "base-directory": ["d1"], "v": ["x=1", "1"], "s": ["1", ".txt", ","], "length": ["64"],
    "context-separator": ["x"], "tabs": ["4"], "type-not": ["py"], "color-words": ["."], "anchored": ["x"], "default": ["HEAD"], "git-path": ["hooks"],
    "depth": ["0"], "C": ["1", "50"], "U": ["1", "root"], "G": ["one", "root"], "x": ["*.o", "tmpfs"], "level?": ["1"], "c": ["1", "%n", "never"], "w": ["1", "80", "address"],
}  # fmt: skip


_BY_PROGRAM = {
    ("file", "e"): ["ascii"],
    ("stat", "cached"): ["always"],
    ("getfattr", "e"): ["text"],
    ("pip", "format"): ["json", "freeze"],
    ("pip3", "format"): ["json"],
}


def values_of(program: str, option: str) -> list[str]:
    """Values to try for an option, the likeliest first."""
    if program == "find":
        return _FIND.get(option, ["1"])
    if (program, option) in _BY_PROGRAM:
        return _BY_PROGRAM[program, option]
    return _BY_OPTION.get(option, _NUMBERS)


_FIND = {
    "-name": ["*.txt"], "-iname": ["*.TXT"], "-path": ["*/d1/*"], "-ipath": ["*"], "-wholename": ["*"], "-iwholename": ["*"],
    "-lname": ["a*"], "-ilname": ["a*"], "-regex": [".*"], "-iregex": [".*"], "-regextype": ["posix-extended"], "-type": ["f"],
    "-xtype": ["f"], "-size": ["+1k"], "-perm": ["644", "-u+r"], "-user": ["root"], "-group": ["root"], "-printf": ["%p\\n"],
    "-fstype": ["ext4"], "-context": ["x"], "-newer": ["a.txt"], "-anewer": ["a.txt"], "-cnewer": ["a.txt"], "-samefile": ["a.txt"],
}  # fmt: skip
