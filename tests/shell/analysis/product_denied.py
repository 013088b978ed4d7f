"""Deny and ask rules for programs reach what might run them (C1, C5, C21)."""

from __future__ import annotations

from product_model import MODES, Case, Row, RuleSet, make_row

DENIED = ("rm", "curl", "wget", "ssh", "python3", "node", "perl", "docker", "kubectl", "make", "npm", "chmod", "dd", "nc", "mysql", "psql", "terraform", "systemctl", "shutdown", "crontab", "scp", "git", "pip", "mkfs", "useradd")  # fmt: skip

SURE = (
    "{} x", "{}", "/bin/{} x", "/usr/bin/{} x", "./{} x", "../{} x", "'{}' x", '"{}" x', "\\{} x", "$'{}' x", "{}'' x", '""{} x', "A=1 {} x", "PATH=/x {} x", "LD_PRELOAD=x {} x", "A=1 B=2 {} x", "A+=1 {} x", "A=$(ls) {} x", "{}\\\n x", "  {}   x", "{}\tx", "{}.exe x", "/c/bin/{}.exe x",
    "ls; {} x", "ls && {} x", "ls || {} x", "ls | {}", "ls |& {}", "ls & {} x", "ls\n{} x", "({} x)", "{{ {} x; }}", "! {} x", "if {} x; then ls; fi", "if ls; then {} x; fi", "for i in a; do {} $i; done", "while {} x; do ls; done", "until {} x; do ls; done", "case a in a) {} x;; esac", "f() {{ {} x; }}; f", "function f {{ {} x; }}", "select i in a; do {} $i; done", "{} x &", "time {} x", "{{{},x}} y", "{} {{1..3}}", "{} x > out.txt", "> out.txt {} x", "2>&1 {} x", "{} < a.txt",
    "echo $({} x)", "echo `{} x`", 'echo "$({} x)"', "cat <({} x)", "ls > >({} x)", "cat <<EOF\n$({} x)\nEOF", "cat <<< $({} x)", "echo $(( $({} x) ))", "echo ${{v:-$({} x)}}", 'echo "${{v:-`{} x`}}"', "v=$({} x)", "a=($({} x))", "a[$({} x)]=1", "[[ $({} x) ]]", "for i in $({} x); do ls; done", "case $({} x) in a) ls;; esac", "echo ${{a[$({} x)]}}", "ls $({} x)", "local v=$({} x)", "export v=$({} x)",
    "env {} x", "env A=1 {} x", "env -i {} x", "env -u A {} x", "command {} x", "exec {} x", "nohup {} x", "nice {} x", "nice -n 5 {} x", "nice -5 {} x", "timeout 5 {} x", "timeout -k 5 5 {} x", "timeout --signal=KILL 5 {} x", "time -p {} x", "stdbuf -o0 {} x", "stdbuf -oL -eL {} x", "setsid {} x", "setsid -f {} x", "ionice -c3 {} x", "ionice -c 3 {} x", "watch {} x", "watch -n 1 '{} x'", "sudo {} x", "sudo -u root {} x", "sudo -E A=1 {} x", "xargs {}", "ls | xargs {}", "xargs {} -f",
    "sh -c '{} x'", 'bash -c "{} x"', "bash -lc '{} x'", "bash -e -c '{} x'", "/bin/sh -c '{} x'", "eval '{} x'", "eval {} x", 'eval "{} x"', "sudo sh -c '{} x'", "timeout 5 nice {} x", "env timeout 5 {} x", "bash -c 'bash -c \"{} x\"'", "nohup sh -c '{} x; ls' &", "sh -c 'ls; {} x'", "builtin command {} x", "sudo env A=1 {} x", "/usr/bin/env {} x", "/usr/bin/timeout 5 {} x", "'env' {} x", "\\sudo {} x",
)  # fmt: skip
"""Forms of which C5 says that a deny rule denies them."""

UNSURE = (
    "env -S '{} x'", "env --split-string='{} x'", "doas {} x", "su -c '{} x'", "su root -c '{} x'", "flock f {} x", "flock -c '{} x' f", "chroot / {} x", "unshare {} x", "strace {} x", "strace -f -o log {} x", "ltrace {} x", "script -c '{} x'", "script -qc '{} x' /dev/null", "taskset 1 {} x", "chrt 1 {} x", "busybox {} x", "find . -exec {} {{}} \\;", "find . -execdir {} {{}} +", "find . -ok {} {{}} \\;", "trap '{} x' EXIT", "trap {} INT", "coproc {} x", "coproc N {{ {} x; }}", "xargs -n1 {}", "xargs -I@ {} @", "xargs -0 -P4 {}", "ls | xargs -d '\\n' {}",
    "bash <<< '{} x'", "bash <<EOF\n{} x\nEOF", "sh <<'EOF'\n{} x\nEOF", "echo '{} x' | sh", "echo '{} x' | bash -s", "printf '{} x' | sudo bash", "cat <<EOF | sh\n{} x\nEOF", "parallel {} ::: x", "fd -x {}", "fd -x{}", "fd --exec {}", "fd --exec={}", "fd -X {}", "entr {} x", "ls | entr -r {} x", "ssh h {} x", "ssh h '{} x'", "docker run a {} x", "docker exec c {} x", "docker exec c sh -c '{} x'", "kubectl exec p -- {} x", "kubectl debug p -- {} x", "podman run a {} x", "npx {}", "make SHELL={}", "python3 -c 'import os; os.system(\"{} x\")'", "python3.11 -c 'import os; os.system(\"{} x\")'", "perl -e 'system \"{} x\"'", "ruby -e 'system \"{} x\"'", "node -e 'require(\"child_process\").execSync(\"{} x\")'", "deno eval 'run(\"{}\")'", "awk 'BEGIN{{system(\"{} x\")}}'", "gawk 'BEGIN{{ \"{} x\" | getline }}'",
    "git -c alias.x='!{} x' x", "git rebase -x '{} x' main", "git bisect run {} x", "git submodule foreach '{} x'", "git -c core.pager={} log", "git -c core.sshCommand={} fetch", "git grep -O{} a", "git difftool -x {} a", "tar --to-command={} -xf a.tar", "tar -cf a.tar --checkpoint-action=exec={} .", "tar -I {} -xf a.tar", "rsync -e {} a b", "rsync --rsh={} a b", "rg --pre {} a", "rg --pre={} a", "sort --compress-program={} a.txt", "split --filter='{} x' a.txt", "vim -c ':!{} x'", "vim -es -c '!{}' a", "ex -c '!{} x'", "tmux new '{} x'", "tmux send-keys '{} x' Enter", "screen -dm {} x", "just -c {}", "just --command {} x", "cargo watch -s '{} x'", "nodemon --exec '{} x'", "watchexec {} x", "hyperfine '{} x'", "systemd-run {} x", "at now <<< '{} x'", "batch <<EOF\n{} x\nEOF", "crontab - <<< '* * * * * {} x'", "gdb -ex 'shell {} x'", "gdb --args {} x", "expect -c 'spawn {} x'", "sshpass -p x {} h", "firejail {} x", "bwrap --bind / / {} x", "nsenter -t 1 {} x", "dbus-run-session {} x", "xvfb-run {} x", "poetry run {} x", "uv run {} x", "pipenv run {} x", "bundle exec {} x", "direnv exec . {} x", "mise exec -- {} x", "nix-shell --run '{} x'", "conda run {} x", "lerna exec {} x", "yarn exec {} x", "pnpm exec {} x", "dotenv {} x", "op run -- {} x", "aws-vault exec p -- {} x", "caffeinate {} x", "catchsegv {} x", "valgrind {} x", "perf stat {} x", "prlimit --nofile=1 {} x", "setpriv --reuid 1 {} x", "runuser -u a {} x", "runcon a {} x", "cgexec -g a {} x", "numactl -N 0 {} x", "unbuffer {} x", "rlwrap {} x", "mapfile -C {} a < a.txt", "compgen -C {}", "complete -C {} a", "alias a='{} x'", "hash -p /bin/{} ls", "enable -f {} x", ". {}", "source ./{}", "ld.so /bin/{} x", "/lib64/ld-linux-x86-64.so.2 /bin/{} x", "man -P {} ls", "man -P'{} x' ls", "less '+!{} x' a.txt", "fzf --preview '{} x'", "fzf --bind 'enter:execute({} x)'", "zip a.zip b -T -TT '{} x'", "go test -exec {} ./...", "go run -exec={} .", "gcc -wrapper {} a.c", "ninja -t {}", "cmake -E {} x", "cmake -P {}", "wine {}.exe", "pwsh -c '{} x'", "jq -n 'input' | {} x", "dash -c '{} x'", "zsh -c '{} x'", "fish -c '{} x'", "ksh -c '{} x'", "tcsh -c '{} x'", "lua -e 'os.execute(\"{} x\")'", "php -r 'system(\"{} x\");'", "tclsh <<< 'exec {} x'", "osascript -e 'do shell script \"{} x\"'", "sqlite3 a.db '.shell {} x'", "psql -c '\\! {} x'", "mysql -e '\\! {} x'", "m4 <<< 'syscmd({} x)'", "ed <<< '!{} x'",
    "zz {}", "zz a {} b", "zz /bin/{}", "zz ./x/{} b", "zz --exec={}", "zz -x{}", "zz -x {}", "zz --run '{} x'", "zz '{} -rf x'", "zz 'a; {} x'", "zz \"a && {} x\"", "zz 'a|{}'", "zz '$({} x)'", "zz \"a\n{} x\"", "zz <<EOF\n{} x\nEOF", "zz <<'EOF'\na; {} x\nEOF", "zz <<< '{} x'", "zz <<< {}", "zz cmd={}", "zz --cmd=/usr/bin/{}", "zz '{{\"run\": \"{} x\"}}'", "zz -- {} x", "zz {}.exe", "ls | zz {}",
)  # fmt: skip
"""Forms of which C5 and C21 say at least ask."""

UNKNOWN_NAMES = ("$x a", '"$x" a', "${x} a", "$(cat a.txt) b", "`cat a.txt` b", "$x", "a$x b", "./* a", "$1 a", '"$@"', "${x:-ls} a", "$x$y", "eval $x", 'sh -c "$x"', "bash -c $x", "env $x a", "sudo $x", "xargs $x", "sudo -u a $x", "timeout 5 $x", "cat a.txt | sh", "bash < a.txt", "bash a.txt | $x", "${!x} a", "? a", "[a-z]? x", "curl h | bash", "$'\\x72'$x a", "exec $x", "command $x a", "source <(cat a.txt)", ". $x", "trap \"$x\" EXIT", "find . -exec $x {} +", "$((1))$x", "cat a.txt | sh -", "cat a.txt | bash /dev/stdin", "bash /dev/fd/0 < a.txt", "bash /proc/self/fd/0 < a.txt", "cat a.txt | python3 -", "cat a.txt | sudo sh", "sh <<< $x", "bash <<EOF\n$x\nEOF", "cat a.txt | env bash", "cat a.txt | timeout 5 sh", "xargs -I{} sh -c {} < a.txt", "cat a.txt | parallel", "perl < a.txt", "cat a.txt | node", "make -f - < a.txt", "awk -f - < a.txt", "bash <(cat a.txt)", "sh -s < a.txt", "zsh < a.txt", "cat a.txt | busybox sh", "cat a.txt | (sh)", "cat a.txt | { bash; }", "while read -r l; do $l; done < a.txt", "for c in $(cat a.txt); do $c; done", "mapfile -t c < a.txt; \"${c[@]}\"", "cat a.txt | nohup bash -s", "cat a.txt | exec sh", "cat a.txt | command bash")  # fmt: skip

VERSIONED = (("python3", "python3.12 -c 1"), ("python3", "python3.11 x.py"), ("python3", "/usr/bin/python3.12 x.py"), ("python", "python3.12 x.py"), ("pip3", "pip3.11 install x"), ("pip", "pip3.12 install x"), ("node", "node18 x.js"), ("node", "node-18 x.js"), ("perl", "perl5.36 -e 1"), ("perl", "perl5.36.0 -e 1"), ("ruby", "ruby3.1 x.rb"), ("php", "php8.2 x.php"), ("lua", "lua5.4 x.lua"), ("gcc", "gcc-12 a.c"), ("clang", "clang-15 a.c"), ("g++", "g++-12 a.c"), ("tclsh", "tclsh8.6 x"), ("python3", "sudo python3.12 x.py"), ("python3", "timeout 5 python3.11 x.py"), ("python3", "python3.12.exe x.py"), ("bash", "bash5 -c ls"), ("java", "java17 x"), ("ld", "ld.exe x"), ("cargo", "cargo.exe build"), ("guile", "guile-3.0 x"))  # fmt: skip

SUBCOMMANDS = (
    ("git push", "git push"), ("git push", "git push origin main"), ("git push", "git -C x push"), ("git push", "git --no-pager push"), ("git push", "git -c a.b=c push"), ("git push", "git --git-dir=x push origin"), ("git push", "git --git-dir x push origin"), ("git push", "git  push"), ("git push", "git 'push'"), ("git push", "git p\\ush"), ("git push", "sudo git -C x push"), ("git push", "bash -c 'git -C x push'"), ("git push", "ls && git push"), ("git push", "git --work-tree=/x -C y push"), ("git push", "/usr/bin/git push"), ("git push", "git -p push"), ("git push", "git --namespace=n push"), ("git push", "A=1 git push"), ("git push", "timeout 5 git -C x push"),
    ("npm publish", "npm publish"), ("npm publish", "npm --prefix x publish"), ("npm publish", "npm -w a publish"), ("docker run", "docker run x"), ("docker run", "docker --context c run x"), ("docker run", "docker -H h run x"), ("docker run", "docker --log-level=debug run x"), ("kubectl delete", "kubectl delete pod x"), ("kubectl delete", "kubectl -n a delete pod x"), ("kubectl delete", "kubectl --context=c delete pod x"), ("kubectl delete", "kubectl --namespace a delete pod x"), ("terraform destroy", "terraform -chdir=x destroy"), ("cargo publish", "cargo -q publish"), ("systemctl stop", "systemctl --user stop x"), ("make deploy", "make deploy"), ("make deploy", "make -C x deploy"), ("make deploy", "make -j4 deploy"), ("gh pr", "gh -R a/b pr merge"), ("aws s3", "aws --profile p s3 rm x"), ("pip install", "pip --quiet install x"), ("rm -rf", "rm -rf x"), ("yarn publish", "yarn --cwd x publish"),
)  # fmt: skip

HARMLESS = (
    "echo {}", "echo {} x", "echo 'use {} here'", 'echo "{} -rf x"', "echo -n {}", "cat {}", "cat {}.txt", "cat docs/{}.md", "cat docs/{}", "head -n 5 {}", "tail -n 5 {}", "grep {} a.txt", "grep -r {} src", "grep -rn '{} -rf' src", "grep -e {} a.txt", "grep -c {} a.txt", "grep -E '{}|ls' a.txt", "grep -i \"{} x\" a.txt", "rg {}", "rg -n '{} x' src", "rg --files-with-matches {} src", "ls {}", "ls -la {}", "ls docs/{}", "wc -l {}", "printf '%s\\n' {}", "printf '{}\\n'", "test -f {}", "test {} = x", "[ -d {} ]", "[ -f bin/{} ]", "[[ -e {} ]]", "[[ a == {} ]]", "stat {}", "file {}", "du -sh {}", "diff {} a.txt", "sort {}", "uniq {}", "cut -d, -f1 {}", "nl {}", "find . -name {}", "find . -name '{}*'", "find {} -type f", "which {}", "type {}", "command -v {}", "git log --grep={}", "git log --grep {}", "git log -- {}", "git show HEAD:{}", "git diff {}", "git blame {}", "git grep {}", "git ls-files {}", "git log --author={}", "git log -S'{} x'", "git status {}", "git branch --list {}", "git tag -l {}", "sed -n '/{}/p' a.txt", "tr {} x", "seq 3 # {}", "true {}", "basename /bin/{}", "dirname a/{}", "realpath {}", "ls | grep {}", "cat a.txt | grep -v {}", "ls # {} x", "echo a && grep {} a.txt", "cat <<EOF\n{} x\nEOF", "cat <<'EOF'\n{} x\nEOF", "cat <<< '{} x'", "grep {} <<< 'a b'", "wc -c <<< {}", "x={}; echo $x", "for i in {} b; do echo $i; done", "case {} in a) echo b;; esac", "md5sum {}", "sha256sum {}", "jq '.{}' a.json", "od -c {}", "cmp {} a.txt", "id # {}",
)  # fmt: skip
"""Programs that never execute their arguments: the deny rule changes nothing (C21)."""

HARMLESS_WITH_RULE = (
    ("git", "git commit -m '{} old code'"), ("git", 'git commit -m "remove {}"'), ("git", "git commit -am {}"), ("git", "git add {}"), ("git", "git add src/{}"), ("git", "git checkout -b {}"), ("mkdir", "mkdir {}"), ("mkdir", "mkdir -p src/{}"), ("touch", "touch {}"), ("touch", "touch src/{}.txt"), ("cp", "cp {} x"), ("cp", "cp a.txt src/{}"), ("mv", "mv {} x"), ("git", "git mv {} x"), ("tee", "echo {} | tee out.txt"), ("git", "git tag -a v1 -m '{} x'"), ("git", "git stash push -m {}"), ("git", "git commit --message='{} x'"), ("rmdir", "rmdir {}"), ("git", "git branch {}"),
)  # fmt: skip


def _make_deny_rules(
    denied: str, hit: str, allow: tuple[str, ...] = (), kind: str = "none"
) -> RuleSet:
    return RuleSet(
        f"deny {denied}, allow {'+'.join(allow) or 'nothing'}",
        kind,
        allow,
        deny=(f"Bash({denied}:*)",),
        hit=hit,
    )


def _make_reached_rows() -> list[Row]:
    found: list[Row] = []
    for forms, hit, clause, count in ((SURE, "deny", "C5", 3), (UNSURE, "reach", "C21", 3)):
        for index, form in enumerate(forms):
            for step in range(count):
                denied = DENIED[(index * count + step) % len(DENIED)]
                if form == "{}" and denied == "git":
                    continue
                text = form.format(denied)
                carrier = text.split()[0].strip("'\"\\")
                case = Case(f"{denied}: {form}", text, clause)
                own = (
                    ()
                    if carrier == denied or not carrier.isalnum()
                    else (f"Bash({carrier}:*)", "Bash(ls:*)", "Bash(echo:*)")
                )
                for allow in ((), ("Bash",), own):
                    modes = (
                        MODES
                        if step == 0 and allow == ("Bash",)
                        else ("default", "acceptEdits")
                        if allow
                        else ("default", "bypassPermissions")
                    )
                    found += [
                        make_row("deny program", case, _make_deny_rules(denied, hit, allow), mode)
                        for mode in modes
                    ]
                if step == 0:
                    asking = RuleSet(
                        f"ask {denied}, allow Bash",
                        "whole",
                        ("Bash",),
                        ask=(f"Bash({denied}:*)",),
                        hit="ask",
                    )
                    found += [
                        make_row("ask program", case, asking, mode)
                        for mode in ("default", "dontAsk", "bypassPermissions")
                    ]
    return found


def _make_unknown_rows() -> list[Row]:
    found: list[Row] = []
    for text in UNKNOWN_NAMES:
        case = Case(text, text, "C5", unknown=True, whole=None)
        for denied, asked in (("rm", ""), ("zz", ""), ("", "curl")):
            rules = RuleSet(
                f"whole rule, deny {denied} ask {asked}",
                "whole",
                ("Bash",),
                ask=(f"Bash({asked}:*)",) if asked else (),
                deny=(f"Bash({denied}:*)",) if denied else (),
                strangers=True,
            )
            found += [make_row("unknown program", case, rules, mode) for mode in MODES]
    return found


def _make_named_rows() -> list[Row]:
    found: list[Row] = []
    for denied, text in VERSIONED:
        case = Case(f"{denied}: {text}", text, "C21")
        found += [
            make_row("versions", case, _make_deny_rules(denied, "deny", allow), mode)
            for allow in ((), ("Bash",))
            for mode in ("default", "bypassPermissions", "dontAsk")
        ]
    for denied, text in SUBCOMMANDS:
        case = Case(f"{denied}: {text}", text, "C5")
        found += [
            make_row("sub-commands", case, _make_deny_rules(denied, "deny", allow), mode)
            for allow in ((), ("Bash",), (f"Bash({text.split()[0]}:*)",))
            for mode in ("default", "bypassPermissions")
        ]
    return found


def _make_harmless_rows() -> list[Row]:
    found: list[Row] = []
    for index, form in enumerate(HARMLESS):
        for step in range(5):
            denied = DENIED[(index * 5 + step) % len(DENIED)]
            text = form.format(denied)
            if text.split()[0] == denied:
                continue
            if f" | {denied}" in text or (denied == "git" and text.startswith("git")):
                continue
            case = Case(f"{denied}: {form}", text, "C21", reads=True)
            modes = MODES if step == 0 else ("default",)
            found += [
                make_row("harmless word", case, _make_deny_rules(denied, ""), mode)
                for mode in modes
            ]
            if step == 0:
                asking = RuleSet(f"ask {denied}", ask=(f"Bash({denied}:*)",))
                found.append(make_row("harmless word", case, asking, "default"))
    for index, (program, form) in enumerate(HARMLESS_WITH_RULE):
        for step in range(6):
            denied = DENIED[(index * 4 + step) % len(DENIED)]
            if denied == program:
                continue
            text = form.format(denied)
            case = Case(f"{denied}: {form}", text, "C21", program)
            for allow, kind in ((("Bash",), "whole"), ((f"Bash({program}:*)",), "prefix")):
                found.append(
                    make_row(
                        "harmless word", case, _make_deny_rules(denied, "", allow, kind), "default"
                    )
                )
    return found


def make_rows() -> list[Row]:
    """Every denied program with its carriers."""
    return [
        *_make_reached_rows(),
        *_make_unknown_rows(),
        *_make_named_rows(),
        *_make_harmless_rows(),
    ]
