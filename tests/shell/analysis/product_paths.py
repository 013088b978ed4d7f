"""Rules for paths reach every spelling of a path; what nobody takes back asks (C10, C20, C23, C25)."""

from __future__ import annotations

from product_model import (  # fmt: skip
    NO_RULE,
    WHOLE,
    WHOLE_OTHER_ASK,
    WHOLE_OTHER_DENY,
    Case,
    Row,
    RuleSet,
    allow_program,
    allow_text,
    cross,
    make_row,
)

COVERING = ("src/keep.txt", "./src/keep.txt", "/src/keep.txt", "//repo/src/keep.txt", "docs/../src/keep.txt", "/docs/../src/keep.txt", "//repo/docs/../src/keep.txt", "//etc/../repo/src/keep.txt", "src/*.txt", "src/*", "src/**", "/src/**", "**/keep.txt", "**/src/*", "/src/k*", "src/k?ep.txt", "//repo/**/keep.txt", "//repo/**", "src/**/keep.txt", "**", "s*/keep.txt", "*/keep.txt", "docs/../src/**", "./src/./keep.txt")  # fmt: skip
"""Rules that cover src/keep.txt."""
SPELLED_OUT = tuple(pattern for pattern in COVERING if "*" not in pattern and "?" not in pattern)
PATTERNS = tuple(pattern for pattern in COVERING if pattern not in SPELLED_OUT)
ELSEWHERE = ("lib/*.txt", "src/*.md", "src/keep", "//etc/**", "**/other.txt", "src/sub/**", "src/../lib/keep.txt", "//srv/src/keep.txt", "keep.txt/*", "src/keep.txt.old", "lib/**/keep.txt")  # fmt: skip
"""Rules that do not."""

READS = ("cat src/keep.txt", "cat ./src/keep.txt", "cat docs/../src/keep.txt", "cat /repo/src/keep.txt", "cat 'src/keep.txt'", "cat src//keep.txt", "cat src/./keep.txt", "cat sr'c/keep'.txt", "cat < src/keep.txt", "grep x src/keep.txt", "diff a.txt src/keep.txt", "head -n 1 -- src/keep.txt", "cat src/../src/keep.txt", "sort src/keep.txt", "cat a.txt src/keep.txt")  # fmt: skip
"""Commands that read it, whatever there is."""
MAY_READ = ("cat src/*.txt", "cat src/*", "cat */keep.txt", "cat */*.txt", "cat src/k*", "cat src/?eep.txt", "cat src/[jk]eep.txt", "cat s*/keep.txt", "cat */*", "cat $x", "cat src/$x", 'cat "$x"', "cat $(cat a.txt)", "cat *$x", "grep -r x src", "grep -r x .", "rg x", "rg x src", "diff -r src docs", "cd src && cat keep.txt", "cd src && cat *", "cat {src,docs}/keep.txt", "x=src/keep.txt; cat $x", "for f in src/keep.txt; do cat $f; done", "for f in src/*; do cat $f; done", "bash -c 'cat src/keep.txt'", "sudo cat src/keep.txt", "git show HEAD:src/keep.txt", "git show HEAD:./src/keep.txt", "git show HEAD:src/$x", "git show HEAD:$x", 'git show "main:$x"', "git cat-file -p HEAD:$x", "git show :src/keep.txt", "git log -L1,2:src/keep.txt", "git -C src show HEAD:./keep.txt", "zz src/keep.txt", "zz --file=src/keep.txt", "zz --file src/keep.txt", "zz -fsrc/keep.txt", "zz in=src/keep.txt", "zz a=@src/keep.txt", "zz @src/keep.txt", "zz file:///repo/src/keep.txt", "dd if=src/keep.txt", "curl -F a=@src/keep.txt h", "curl -d @src/keep.txt h", "zz -C src keep.txt", "tar -C src -cf - keep.txt", "xargs -a src/keep.txt", "cp src/keep.txt docs/x", "mv src/keep.txt docs/x", "ln src/keep.txt docs/x", "cp -r src docs/x", "tar cf - src", "find src -type f | xargs cat", "cat <(cat src/keep.txt)", "echo $(<src/keep.txt)", "while read -r l; do echo $l; done < src/keep.txt", "sort --files0-from=src/keep.txt", "wc --files0-from=list", "awk 1 src/keep.txt", "python3 -c 'print(open(\"src/keep.txt\").read())'")  # fmt: skip
"""Commands that read it, or may."""
READS_OTHER = ("cat docs/a.txt", "cat docs/*.md", "ls docs", "cat README.md", "grep x docs/a.txt", "cat docs/../a.txt", "wc -l docs/*.md")  # fmt: skip

MAY_WRITE = ("rm src/keep.txt", "rm -f src/*", "rm */keep.txt", "mv src/keep.txt x", "mv a.txt src/keep.txt", "cp a.txt src/keep.txt", "cp -t src keep.txt", "cp keep.txt src", "cp keep.txt src/", "sed -i s/a/b/ src/keep.txt", "sed -i s/a/b/ src/*.txt", "echo a > src/keep.txt", "echo a >> docs/../src/keep.txt", "echo a >| src/keep.txt", "> src/keep.txt", "touch src/keep.txt", "ls | tee src/keep.txt", "ls | tee -a src/keep.txt", "sort -o src/keep.txt a.txt", "sort --output=src/keep.txt a.txt", "dd of=src/keep.txt", "truncate -s 0 src/keep.txt", "ln -f a.txt src/keep.txt", "ln -s a.txt src/keep.txt", "chmod 600 src/keep.txt", "install a.txt src/keep.txt", "cd src && rm keep.txt", "cd src && echo a > keep.txt", "rm $x", "echo a > $x", "cp a.txt $x", "rm src/$x", "bash -c 'rm src/keep.txt'", "find . -name keep.txt -delete", "git checkout -- src/keep.txt", "git rm src/keep.txt", "git mv src/keep.txt x", "git clean -fdx", "git reset --hard", "zz src/keep.txt", "zz -o src/keep.txt", "zz --out=src/keep.txt", "zz out=src/keep.txt", "xargs rm", "ls | xargs rm -f", "rsync a.txt src/keep.txt", "patch src/keep.txt", "perl -pi -e s/a/b/ src/keep.txt", "curl -o src/keep.txt h", "wget -O src/keep.txt h", "vim -es src/keep.txt", "awk '{print > \"src/keep.txt\"}' a.txt")  # fmt: skip
"""Commands that change it, or may."""

MAY_WRITE_BELOW = (
    "rm -r src",
    "rm -rf ./src",
    "rm -fr docs/../src",
    "mv src x",
    "find src -delete",
    "find src -name '*.txt' -exec rm {} +",
    "chmod -R 600 src",
    "git rm -r src",
    "sudo rm -r src",
)
"""Commands that change it with its directory."""
MAY_UNPACK = ("tar xf a.tar -C src", "unzip a.zip -d src")
"""Commands of which only the archive tells what they change."""

CLIMBING = ("cat .*/a.txt", "cat */../../x", "cat src/*/../../../x", "head .?/x", "cat .[.]/x", "grep x .*/a.txt", "cat src/.*/.*/x", "cat .*/.*/x", "wc -l .*/x", "cat ./.*/x", "stat src/.*/../../x", "ls .*/.*", "cat .*[.]/x")  # fmt: skip
"""Patterns that may leave the working directories by `..`."""
REBINDING = ("declare $x; ls", 'declare "$x"; ls', "export $x; ls", "typeset $x; ls", "readonly $x; ls", "read $x < a.txt; ls", "mapfile $x < a.txt; ls", "printf -v $x a; ls", "declare -- $x; ls", "export -- $x && ls", "readarray -t $x < a.txt; cat a.txt", "declare -x $(cat a.txt); ls", "export `cat a.txt`; ls", "for i in a; do export $x; done; ls", "read -r a $x < a.txt; ls")  # fmt: skip
"""Built-ins that set a variable which the text does not name."""

CHANGED_MEANING = (
    "alias $x; ls",
    'alias "$x"; ls',
    "alias ll='ls -l'; ls",
    "alias ls=zz; ls",
    "unalias -a; alias $x; ls",
    "enable -n echo; ls",
    "hash -p /bin/zz ls; ls",
    "shopt -s expand_aliases; ls",
    "export PATH=.; ls",
    "declare -x PATH=x; ls",
    "PATH=.; ls",
    "readonly IFS=x; ls",
)
"""Commands after which later words mean something else."""
SAME_MEANING = (
    "alias ll; ls",
    "alias; ls",
    "export A=1; ls",
    "declare -x A=1; ls",
    "A=1; ls",
    "readonly A=x; ls",
    "set -e; ls",
    "shopt -s nullglob; ls",
    "export A; ls",
    "read -r a < a.txt; ls",
    "unset A; ls",
)
"""Commands after which they do not."""
ORDINARY = (
    "zz a.txt",
    "zz --flag value",
    "zz -abc d/e.f",
    "zz sub --opt=val -- more",
    "make build",
    "npm run build",
    "cargo test -- x",
    "zz -I include -o out",
    "zz 'some words' x",
    "zz {a,b}",
    "docker compose up",
    "zz a:b c=d @e %f +g",
)
"""Programs with words that name no program."""
LINE_RANGES = (
    "git log -L1,2:a.txt",
    "git log -L10,+5:a.txt",
    "git log -L5,-2:a.txt",
    "git log -L/x/,/y/:a.txt",
    "git log -L:f:a.txt",
    "git log -L 1,2:src/a.txt",
    "git log -L/a/,+3:a.txt",
    "git log -L^/a/,5:a.txt",
    "git log -L1,2:a.txt -L3,4:b.txt",
    "git log -L,5:a.txt",
)

JQ_KEYS = (
    "jq '{env: .a}' f.json",
    "jq '{env}' f.json",
    "jq '{env, b}' f.json",
    "jq '{a: {env}}' f.json",
    "jq '{env: 1, input: 2}' f.json",
    "jq '{b, env: .c}' f.json",
    "jq '[.[] | {env}]' f.json",
)
JQ_VALUES = (
    "jq '{env: env}' f.json",
    "jq '{a: env}' f.json",
    "jq '{a: [env]}' f.json",
    "jq '{(env | keys[0]): 1}' f.json",
    "jq '{env: (1, env)}' f.json",
)
"""Keys of objects, which read nothing, and values, which do."""
REMOVES_ANYTHING = (
    "rm -r $x",
    'rm -rf "$x"',
    "rm -R $x",
    "rm --recursive $x",
    "rm -rf $x/",
    "rm -r $(cat a.txt)",
    "ls | xargs rm -r",
    "ls | xargs -0 rm -rf",
    "ls | xargs -n 1 rm -fr",
)
REMOVES_FILES = (
    "rm $x",
    'rm -f "$x"',
    "rm $(cat a.txt)",
    "ls | xargs rm",
    "ls | xargs rm -f",
    "ls | xargs -0 rm -v",
)
"""Removals of what the text does not name, with and without trees."""

IRREVERSIBLE = (
    ("git", "git push -f"), ("git", "git push --force"), ("git", "git push --force origin main"), ("git", "git push origin main --force"), ("git", "git push origin +main"), ("git", "git push origin '+main:main'"), ("git", "git push -uf origin main"), ("git", "git push --mirror"), ("git", "git push --mirr"), ("git", "git push origin :old"), ("git", "git push origin --delete old"), ("git", "git push -d origin old"), ("git", "git push --prune origin"), ("git", "git -C sub push -f"), ("git", "git --no-pager push --force"), ("git", "git -c remote.o.mirror=true push o"), ("git", "git -c remote.origin.mirror push"), ("git", "git -c user.name=x -c remote.o.mirror=1 push o"), ("git", "git -c alias.p='push -f' p"), ("git", "git -c alias.p='push --force origin' p main"), ("git", "git p''ush -f"), ("git", "/usr/bin/git push -f"), ("git", "git push \\\n -f"),
    ("kubectl", "kubectl delete pod x"), ("kubectl", "kubectl -n a delete pod x"), ("kubectl", "kubectl delete namespace x"), ("terraform", "terraform destroy"), ("terraform", "terraform -chdir=x destroy"), ("docker", "docker system prune"), ("docker", "docker system prune -af"), ("docker", "docker volume rm x"), ("docker", "docker volume prune"), ("helm", "helm uninstall x"), ("gh", "gh repo delete a/b"), ("mkfs.ext4", "mkfs.ext4 /dev/sda1"),
)  # fmt: skip
"""What nobody can take back, and its program."""
AROUND = ("sudo {}", "timeout 5 {}", "bash -c \"{}\"", "ls && {}", "env A=1 {}", "nohup {} &", "({})", "if ls; then {}; fi")  # fmt: skip
REVERSIBLE = (("git", "git push"), ("git", "git push origin main"), ("git", "git push -u origin main"), ("git", "git push origin main:main"), ("git", "git -c user.name=x push o"), ("git", "git push --follow-tags"), ("git", "git -c alias.p=push p"), ("kubectl", "kubectl apply -f a.yml"), ("docker", "docker build ."), ("terraform", "terraform plan"))  # fmt: skip


def _make_deny_rules(rule: str, hit: str, allow: tuple[str, ...]) -> RuleSet:
    return RuleSet(
        f"deny {rule}, allow {allow}", "whole" if allow else "none", allow, deny=(rule,), hit=hit
    )


def _make_reached_rows(
    kind: str, texts, patterns, hit: str, clause: str, modes: tuple[str, ...]
) -> list[Row]:
    return [
        make_row(
            "path rules",
            Case(f"{text} against {kind}({pattern})", text, clause),
            _make_deny_rules(f"{kind}({pattern})", hit, allow),
            mode,
        )
        for number, text in enumerate(texts)
        for step, pattern in enumerate(patterns)
        for allow in ((), ("Bash",))
        for mode in modes
        if allow or (number + step) % 4 == 0
    ]


def _make_free_rows() -> list[Row]:
    pairs = [(text, pattern) for text in READS[:6] for pattern in ELSEWHERE]
    pairs += [
        (text, pattern)
        for text in READS_OTHER
        for pattern in COVERING
        if pattern not in ("//repo/**", "**", "s*/keep.txt", "*/keep.txt")
    ]
    return [
        make_row(
            "path rules",
            Case(f"{text} beside Read({pattern})", text, "C7", "cat", reads=True),
            RuleSet(f"deny Read({pattern})", deny=(f"Read({pattern})",)),
            "default",
        )
        for text, pattern in pairs
    ]


def _make_irreversible_rows() -> list[Row]:
    wrapped = [
        (program, form.format(text))
        for number, (program, text) in enumerate(IRREVERSIBLE)
        for step, form in enumerate(AROUND)
        if (number + step) % 3 == 0 and "\\" not in text and not ('"' in form and "'" in text)
    ]
    cases = [
        Case(text, text, "C25", program, prefix=False, whole=False, exact=None)
        for program, text in (*IRREVERSIBLE, *wrapped)
    ]
    named = [
        Case(text, text, "C25", program, prefix=False, whole=False)
        for program, text in IRREVERSIBLE
        if "\\" not in text and " -c " not in text
    ]
    plain = [Case(text, text, "C25", program) for program, text in REVERSIBLE]
    modes = ("default", "acceptEdits", "dontAsk", "bypassPermissions")
    return [
        *cross("irreversible", cases, modes, lambda case: [NO_RULE, allow_program(case), WHOLE]),
        *cross("irreversible", named, ("default",), lambda case: [allow_text(case)]),
        *cross("irreversible", plain, ("default", "dontAsk"), [NO_RULE, WHOLE]),
    ]


def make_rows() -> list[Row]:
    """Every spelling of a path in rules and in commands, and what cannot be undone."""
    asking = [
        Case(text, text, clause, "cat", prefix=None, whole=None, exact=None, unknown=None)
        for texts, clause in ((CLIMBING, "C10"), (REBINDING, "C22"))
        for text in texts
    ]
    ranges = [Case(text, text, "C23", "git", reads=True) for text in LINE_RANGES]
    keys = [Case(text, text, "C26", "jq", reads=True) for text in JQ_KEYS]
    values = [Case(text, text, "C22", "jq") for text in JQ_VALUES]
    removals = [
        Case(text, text, "C25", "rm", whole=False, bypass=text in REMOVES_FILES)
        for text in (*REMOVES_ANYTHING, *REMOVES_FILES)
    ]
    changing = [Case(text, text, "C5", unknown=True) for text in (*CHANGED_MEANING, *REBINDING)]
    staying = [Case(text, text, "C21") for text in (*SAME_MEANING, *ORDINARY)]
    careful = ("default", "dontAsk")
    return [
        *_make_reached_rows(
            "Read", READS, COVERING, "deny", "C9", ("default", "bypassPermissions")
        ),
        *_make_reached_rows("Read", MAY_READ, COVERING, "reach", "C23", careful),
        *_make_reached_rows("Edit", MAY_WRITE, COVERING, "reach", "C20", (*careful, "acceptEdits")),
        *_make_reached_rows("Edit", MAY_WRITE_BELOW, SPELLED_OUT, "reach", "C20", careful),
        *_make_reached_rows("Edit", MAY_WRITE_BELOW, PATTERNS, "maybe", "C20", careful),
        *_make_reached_rows("Edit", MAY_UNPACK, COVERING, "maybe", "C20", careful),
        *_make_free_rows(),
        *cross("path rules", asking, ("default", "plan", "dontAsk"), [NO_RULE]),
        *cross("path rules", ranges, ("default", "plan"), [NO_RULE]),
        *cross("path rules", keys, ("default", "plan"), [NO_RULE]),
        *cross("path rules", values, ("default", "plan"), [NO_RULE]),
        *cross("removals", removals, ("default", "bypassPermissions"), [NO_RULE, WHOLE]),
        *cross("meanings", changing, careful, [WHOLE_OTHER_DENY, WHOLE_OTHER_ASK]),
        *cross("meanings", staying, careful, [WHOLE_OTHER_DENY, WHOLE_OTHER_ASK]),
        *_make_irreversible_rows(),
    ]
