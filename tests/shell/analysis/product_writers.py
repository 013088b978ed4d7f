"""Writers by their resulting paths (C8, C17, C20), and what is destructive (C25)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from product_model import (
    MODES,
    NO_RULE,
    WHOLE,
    Case,
    Permission,
    Row,
    RuleSet,
    allow_program,
    allow_text,
    cross,
    make_row,
)


@dataclass(frozen=True, slots=True)
class Writer:
    """A command that writes the path at `{}`."""

    text: str
    program: str
    edits: Permission = None
    """acceptEdits names this program (C.1 of the compatibility notes), or leaves it open."""
    into: str = ""
    """`file`, `directory` or both (empty): what the operand at `{}` is."""
    redirects: bool = False
    known: bool = True
    """Its operands are recognised as files; otherwise only the protected ones count."""


COPIERS = [
    Writer("cp a.txt {}", "cp", True), Writer("cp -f a.txt {}", "cp", True), Writer("cp -p a.txt {}", "cp", True), Writer("cp -- a.txt {}", "cp", True), Writer("cp -T a.txt {}", "cp", True, "file"), Writer("cp -t {} a.txt", "cp", True, "directory"),
    Writer("cp --target-directory={} a.txt", "cp", True, "directory"), Writer("cp a.txt b.txt {}", "cp", True, "directory"), Writer("cp -r t {}", "cp", None), Writer("cp -a t {}", "cp", None), Writer("cp -R t/. {}", "cp", None, "directory"),
    Writer("mv a.txt {}", "mv", True), Writer("mv -f a.txt {}", "mv", True), Writer("mv -t {} a.txt", "mv", True, "directory"), Writer("mv a.txt b.txt {}", "mv", True, "directory"), Writer("mv t {}", "mv", None),
    Writer("install a.txt {}", "install"), Writer("install -m 644 a.txt {}", "install"), Writer("install -D a.txt {}", "install", None, "file"), Writer("install -t {} a.txt", "install", None, "directory"), Writer("install -d {}", "install", None, "directory"),
    Writer("ln a.txt {}", "ln"), Writer("ln -s a.txt {}", "ln"), Writer("ln -sf a.txt {}", "ln"), Writer("ln -st {} a.txt", "ln", None, "directory"), Writer("rsync a.txt {}", "rsync"), Writer("rsync -a t/ {}", "rsync", None, "directory"),
    Writer("tar -xf a.tar -C {}", "tar", None, "directory"), Writer("tar xf a.tar --directory={}", "tar", None, "directory"), Writer("tar -C {} -xzf a.tgz", "tar", None, "directory"), Writer("unzip a.zip -d {}", "unzip", None, "directory"), Writer("unzip -o a.zip -d {}", "unzip", None, "directory"),
]  # fmt: skip
CHANGERS = [
    Writer("sed -i s/a/b/ {}", "sed", True, "file"), Writer("sed -i.bak s/a/b/ {}", "sed", True, "file"), Writer("sed --in-place s/a/b/ {}", "sed", True, "file"), Writer("sed -i -e s/a/b/ {}", "sed", True, "file"), Writer("sed -Ei s/a/b/ {}", "sed", True, "file"),
    Writer("touch {}", "touch", True, "file"), Writer("touch a.txt {}", "touch", True, "file"), Writer("mkdir {}", "mkdir", True, "directory"), Writer("mkdir -p {}", "mkdir", True, "directory"), Writer("tee {}", "tee", None, "file"), Writer("tee -a {}", "tee", None, "file"), Writer("echo a | tee {}", "tee", None, "file"),
    Writer("truncate -s 0 {}", "truncate", None, "file"), Writer("dd if=a.txt of={}", "dd", None, "file"), Writer("chmod +x {}", "chmod", None, "file"), Writer("patch {} p.diff", "patch", None, "file"), Writer("gzip {}", "gzip", None, "file"), Writer("gzip -k {}", "gzip", None, "file"),
    Writer("rm {}", "rm", None, "file"), Writer("rm -f {}", "rm", None, "file"), Writer("rm a.txt {}", "rm", None, "file"), Writer("rmdir {}", "rmdir", None, "directory"), Writer("sort -o {} a.txt", "sort", None, "file"), Writer("tar -cf {} src", "tar", None, "file"), Writer("unlink {}", "unlink", None, "file"),
    Writer("uniq a.txt {}", "uniq", None, "file"), Writer("shred {}", "shred", None, "file"), Writer("find src -fprint {}", "find", None, "file"), Writer("curl -o {} http://h/x", "curl", False, "file"), Writer("wget -O {} http://h/x", "wget", False, "file"),
]  # fmt: skip
REDIRECTIONS = [
    Writer(text, "echo", True, "file", redirects=True)
    for text in ("echo a > {}", "echo a >> {}", "echo a >| {}", "echo a &> {}", "echo a &>> {}", "echo a >& {}", "echo a 2> {}", "echo a 1<> {}", "echo a {{fd}}> {}", "> {} echo a", "echo a > {} b", "{{ echo a; }} > {}", "( echo a ) > {}", "for i in 1; do echo $i; done > {}")
] + [
    Writer("cat <<EOF > {}\na\nEOF", "cat", True, "file", redirects=True), Writer("cat a.txt > {}", "cat", True, "file", redirects=True), Writer("grep x a.txt > {} 2>&1", "grep", True, "file", redirects=True), Writer("ls | sort > {}", "sort", True, "file", redirects=True), Writer("> {}", "echo", None, "file", redirects=True), Writer(": > {}", ":", None, "file", redirects=True),
]  # fmt: skip
STRANGERS = [
    Writer(text, text.split()[0], False, "file", known=False)
    for text in ("sd a b {}", "sponge {}", "crudini --set {} a b c", "yq -i .a=1 {}", "zz --out={} a", "zz -o{} a", "zz {}", "zz a {} b", "zz --out {}", "prettier --write {}", "black {}", "git add {}")
]  # fmt: skip

PLAIN = {"file": ("out.txt", "src/new.txt", "./a-b_c.txt", "src/../out.txt", "/repo/out.txt", "'with blank.txt'"), "directory": ("d/", "src", "src/sub/", "/repo/src")}  # fmt: skip
PROTECTED = {
    "file": (".git/config", ".git/hooks/pre-commit", ".mcp.json", ".claude/settings.json", ".vscode/settings.json", ".MCP.json", ".Git/Hooks/pre-commit", ".bashrc", ".husky/pre-commit", ".envrc", ".npmrc", "src/../.mcp.json", "./.mcp.json", "/repo/.mcp.json", "'.mcp.json'", ".mcp.'json'", ".git//config", "sub/.git/hooks/post-checkout", ".git/info/attributes", ".idea/workspace.xml", ".handaxe/settings.json"),
    "directory": (".git", ".git/hooks/", ".claude/", ".vscode", ".GIT/hooks", "./.git/hooks"),
}  # fmt: skip
OUTSIDE = {"file": ("/etc/x", "../x", "~/x", "/tmp/x", "$HOME/x", "src/../../x", "/repo-evil/x", "~/.bashrc", "/dev/sda"), "directory": ("/etc", "../", "~/d", "/tmp/", "src/../..", "/repo-evil")}  # fmt: skip
UNKNOWN = {
    "file": ("$x", '"$x"', '"$(cat a.txt)"', "src/$x", "$(cat a.txt)"),
    "directory": ('"$x"', "$x/", "src/$x"),
}


KINDS_OF_PLACES = {"plain": PLAIN, "protected": PROTECTED, "outside": OUTSIDE, "unknown": UNKNOWN}
_OTHER_MODES = ("plan", "dontAsk", "bypassPermissions", "auto")


def _choose_places(writer: Writer, table: dict[str, tuple[str, ...]], turn: int) -> list[str]:
    """Some places for a writer; of long lists another part for each, so that together they see all."""
    kinds = [writer.into] if writer.into else ["file", "directory"]
    places = [place for kind in kinds for place in table[kind]]
    # Bash expands a tilde behind = only where the word reads like an assignment (dd of=~/x).
    if re.search(r"--[a-z-]+=\{\}", writer.text):
        places = [place for place in places if place[0] != "~"]
    if len(places) > 7:
        places = [place for number, place in enumerate(places) if (number + turn) % 3 == 0]
    return places[: 3 if table is PLAIN else 9]


def _make_writer_case(writer: Writer, place: str, where: str) -> Case:
    text = writer.text.format(place)
    prefix, whole, note = _read_coverage(writer, place, where)
    edits: Permission = False
    if where == "plain":
        edits = None if "<>" in text else writer.edits
    # Removing a critical directory asks there too; which spellings of it count has its own group.
    may_be_critical = writer.program in {"rm", "rmdir", "unlink", "shred"} and where != "plain"
    return Case(
        f"{where}: {text}",
        text,
        "C8" if writer.redirects else "C20",
        writer.program,
        edits=edits,
        prefix=prefix,
        whole=whole,
        exact=None,
        bypass=None if may_be_critical else True,
        note=note,
    )


def _read_coverage(writer: Writer, place: str, where: str) -> tuple[Permission, Permission, str]:
    """Whether a content rule for the program and the rule `Bash` cover it, and how that was read."""
    if writer.redirects and where == "plain":
        # Settled point: judged like a Write in the current mode, also if the program has a rule.
        return False, None, "whether the rule Bash covers a redirection into the project"
    if where == "plain":
        finds = "find" in writer.program
        return None if finds else True, True, "whether Bash(find:*) covers -fprint" if finds else ""
    if writer.text.startswith("git add") or f"-o{place}" in writer.text.format(place):
        return None, None, "the index is written, not the file; or the path is inside a word"
    if not writer.known and where != "protected":
        return None, None, "C20 names only protected paths among the words of an unknown program"
    if where == "unknown" and not writer.redirects:
        return False, None, "whether the rule Bash covers a target that is not known"
    return False, False, ""


def _choose_writer_rules(case: Case) -> list[RuleSet]:
    return [NO_RULE, allow_program(case), WHOLE]


def _make_writer_rows() -> list[Row]:
    found: list[Row] = []
    for index, writer in enumerate([*COPIERS, *CHANGERS, *REDIRECTIONS, *STRANGERS]):
        for where, table in KINDS_OF_PLACES.items():
            for number, place in enumerate(_choose_places(writer, table, index)):
                case = _make_writer_case(writer, place, where)
                found += cross("writers", [case], ("default",), _choose_writer_rules)
                found += cross("writers", [case], ("acceptEdits",), [NO_RULE])
                if number == 0:
                    found += cross("writers", [case], _OTHER_MODES, [NO_RULE, WHOLE])
                    found += cross("writers", [case], MODES, _deny_itself(writer))
    return found


def _deny_itself(writer: Writer) -> list[RuleSet]:
    if writer.program not in writer.text or writer.program == ":":
        return []
    rule = f"Bash({writer.program}:*)"
    return [RuleSet("deny its program", "whole", ("Bash",), deny=(rule,), hit="deny")]


def _make_deny_edit_rows() -> list[Row]:
    """Edit deny rules bind the resulting path, whatever rules and modes say (C17)."""
    found: list[Row] = []
    for writer in [*COPIERS, *CHANGERS, *REDIRECTIONS]:
        if "find src" in writer.text:
            continue
        into = writer.into or "file"
        pairs = (
            [
                ("keep.txt", "Edit(keep.txt)"),
                ("src/keep.txt", "Edit(/src/**)"),
                ("src/keep.txt", "Edit(keep.txt)"),
            ]
            if into == "file"
            else [("d/", "Edit(/d/**)"), ("src/d", "Edit(/src/**)")]
        )
        for place, rule in pairs:
            if place == "d/" and writer.text.startswith(("mkdir", "install -d", "rmdir")):
                continue  # The rule covers what is below d, not d.
            case = _make_writer_case(writer, place, "plain")
            sure = writer.text.startswith(
                (
                    "cp a",
                    "cp -",
                    "mv a",
                    "mv -",
                    "sed",
                    "touch",
                    "tee",
                    "echo",
                    "cat",
                    "grep",
                    "ls",
                    "{",
                    "(",
                    "for",
                    "> ",
                    ":",
                    "rm ",
                    "mkdir",
                    "dd",
                    "truncate",
                )
            )
            sure = sure and into == "file" and " t " not in writer.text
            for allow in ((), ("Bash",), (f"Bash({writer.program}:*)",)):
                rules = RuleSet(
                    f"deny {rule}, allow {allow}",
                    "whole",
                    allow,
                    deny=(rule,),
                    hit="deny" if sure else "reach",
                )
                modes = (
                    ("default", "acceptEdits", "bypassPermissions", "dontAsk")
                    if allow == ()
                    else ("default",)
                )
                found += [
                    make_row(
                        "deny Edit", Case(case.name, case.text, "C17", case.program), rules, mode
                    )
                    for mode in modes
                ]
    return found


RESULTING = [
    Case(text, text, "C20", text.split()[0], prefix=False, exact=False, whole=False)
    for text in (
        "cp x/.mcp.json .", "cp x/.mcp.json ./", "cp x/.mcp.json src/..", "cp -t . x/.mcp.json", "cp -t. x/.mcp.json", "cp --target-directory=. x/.mcp.json", "cp --target-directory . x/.mcp.json", "cp --target-dir=. x/.mcp.json", "cp a.txt x/.mcp.json .", "cp x/.MCP.json .", "cp -p x/.mcp.json .",
        "mv x/.mcp.json .", "mv x/.mcp.json ./", "mv -t . x/.mcp.json", "mv x/.mcp.json b.txt .", "mv .mcp.json old.json", "mv .claude old", "mv .vscode/settings.json s.json", "mv x/.git .", "mv t/.vscode .", "mv x/settings.json .claude", "mv x/settings.json .claude/", "mv x/config .git/",
        "install x/.mcp.json .", "install -t . x/.mcp.json", "ln x/.mcp.json .", "ln -s x/.mcp.json", "ln -s x/.mcp.json .", "ln -sf ../x/config .git/", "ln -s x .git/hooks", "rsync x/.mcp.json .", "rsync -a x/.git .", "cp x/config .git/", "cp x/config .git", "cp x/* .git/", "cp -r t/.git .", "cp -r t/.claude .", "cp -a t/.git/ .git",
        "cp -r t .git", "cp -rT t .git", "cp -r t/. .git", "cp -R t/.vscode .", "cp a.txt .git/./config", "cp a.txt .git//config", "cp a.txt src/../.mcp.json", "cp a.txt /repo/.mcp.json", "cp a.txt .mc\\p.json", "cp a.txt $'.mcp.json'", "cp a.txt \".mcp\".json", "cp a.txt {x,.mcp.json}",
        "cp --backup --suffix=n a.txt .mcp.jso", "cp -b -S n a.txt .mcp.jso", "cp -bS n a.txt .mcp.jso", "cp -bSn a.txt .mcp.jso", "mv -b -S n a.txt .mcp.jso", "mv --backup=simple --suffix=n a.txt .mcp.jso", "install -b -S n a.txt .mcp.jso", "ln -b -S n a.txt .mcp.jso",
        "sed -in s/x/x/ .mcp.jso", "sed -i'n' s/x/x/ .mcp.jso", "sed -i\"n\" s/x/x/ .mcp.jso", "sed --in-place=n s/x/x/ .mcp.jso", "sed --in-pl=n s/x/x/ .mcp.jso", "sed -Ein s/x/x/ .mcp.jso", "sed -n -in p .mcp.jso", "sed -in -e s/x/x/ .mcp.jso", "sed -i s/a/b/ a.txt .mcp.json", "sed -i 's/a/b/w .mcp.json' a.txt", "sed -i 's/a/b/;w .mcp.json' a.txt",
        "sed -i'.git/hooks/*' s/a/b/ pre-commit", "sed -s -i s/a/b/ .mcp.json", "touch a.txt .mcp.json", "tee a.txt .mcp.json", "mkdir -p .git/hooks", "mkdir .claude", "mkdir -p .vscode/x", "dd of=.mcp.json if=a.txt", "truncate -s 0 -- .mcp.json", "tar -xf a.tar -C .git", "tar -xf a.tar --directory .git/hooks", "unzip a.zip -d .claude", "tar xf a.tar .mcp.json", "tar -xf a.tar .git/hooks/pre-commit", "unzip a.zip .mcp.json",
        "rm .mcp.json", "rm -rf .claude", "rm -r .vscode", "rm .git/hooks/pre-commit", "rmdir .claude", "chmod +x .git/hooks/pre-commit", "cp a.txt ~/.bashrc", "mv a.txt ~/.ssh/config", "ln -s a.txt ~/.bashrc", "gzip -d .mcp.json.gz", "gunzip .mcp.json.gz", "sort -o .mcp.json a.txt", "patch .mcp.json p.diff", "touch {~/.bashrc,a}", "cp a.txt {src,~}/x", "mkdir {~,src}/x", "touch {a,.mcp.json}", "touch .{mcp,x}.json", "rm {a,.mcp.json}", "touch {.git/hooks,src}/x",
    )
]  # fmt: skip
RESULTING.extend(
    Case(text, text, "C20", program, prefix=False, exact=None, whole=False, also=also)
    for program, also, text in (
        ("cp", ("Bash(cd:*)",), "cd .git && cp ../a.txt config"), ("touch", ("Bash(cd:*)",), "cd .git/hooks && touch pre-commit"), ("touch", ("Bash(cd:*)",), "cd .git; cd hooks; touch pre-commit"), ("mkdir", ("Bash(cp:*)",), "mkdir -p src/x && cp a.txt .mcp.json"), ("cp", ("Bash(mv:*)",), "cp a.txt .mcp.tmp && mv .mcp.tmp .mcp.json"),
        ("cp", (), "ls && cp x/.mcp.json ."), ("cp", (), "timeout 5 cp x/.mcp.json ."), ("cp", (), "command cp x/.mcp.json ."), ("cp", (), "nice cp x/.mcp.json ."), ("cp", (), "for i in .mcp.json; do cp x/$i .; done"), ("cp", (), "(cp x/.mcp.json .)"), ("cp", (), "if true; then cp x/.mcp.json .; fi"), ("cp", (), "cp x/.mcp.json . &"),
    )
)  # fmt: skip

SECRET_MOVES = [
    Case(text, text, "C20", text.split()[0], prefix=None, exact=None, whole=None, note="reading .env under an allow rule for the program")
    for text in ("mv .env e", "mv .env e && cat e", "cp .env e", "cp .env e && cat e", "ln .env e", "ln .env e && cat e", "ln -s .env e && cat e", "install .env e", "cat .env > e", "dd if=.env of=e", "rsync .env e", "cp .env.local e", "cp sub/.env e", "mv sub/.env.production e", "cp -t d .env", "grep . .env > e", "tee e < .env", "cp ./.env e", "sort -o e .env", "sed 's/a/b/' .env > e", "cp a.txt .env e/")
]  # fmt: skip

TREES = [
    # From the text nobody knows the names of a tree: allow is the first step, and the look at run
    # time can only make it stricter; asking at once is as good.
    Case(text, text, "C20", text.split()[0], edits=None, prefix=None, exact=None, whole=None, note="the names of a tree are not in the text")
    for text in ("cp -r t/. .", "cp -r t/. ./", "cp -a t/ .", "cp -r t .", "cp -r t d", "mv t d", "mv t/* .", "cp t/* .", "cp -rT t .", "tar -xf a.tar", "tar xzf a.tgz", "unzip a.zip", "unzip -o a.zip", "rsync -a t/ .", "rsync -a t .", "rsync -r t/ d/", "cp -r t/.* .", "install -D t/a d/a", "tar -xPf a.tar", "patch -p1 < p.diff", "patch -p1 -i p.diff", "git apply p.diff", "cpio -i < a.cpio", "7z x a.7z", "cp -r t d/..", "cp --parents t/.git/config d", "cp -r .git backup")
]  # fmt: skip

DENIED_BY_RESULT = (
    ("cp x/keep.txt d/", "Edit(/d/keep.txt)", True), ("cp x/keep.txt d", "Edit(/d/keep.txt)", False), ("cp x/keep.txt .", "Edit(/keep.txt)", True), ("mv x/keep.txt d/", "Edit(/d/keep.txt)", True), ("cp -t d x/keep.txt", "Edit(/d/keep.txt)", True), ("mv -t d x/keep.txt", "Edit(/d/keep.txt)", True), ("install x/keep.txt d/", "Edit(/d/keep.txt)", False),
    ("ln -s x/keep.txt", "Edit(/keep.txt)", False), ("cp -r t d", "Edit(/d/**)", False), ("cp -r t src", "Edit(/src/a.txt)", None), ("mv t src", "Edit(/src/t/**)", None), ("mv src old", "Edit(/src/a.txt)", None), ("rm -rf src", "Edit(/src/a.txt)", None), ("rm -r src", "Edit(keep.txt)", None), ("sed -i.bak s/a/b/ keep.txt", "Edit(keep.txt.bak)", False), ("sed -in s/a/b/ keep.txt", "Edit(keep.txtn)", False),
    ("mv keep.txt old.txt", "Edit(keep.txt)", True), ("cp a/* src/", "Edit(/src/**)", False), ("cd src && cp ../a.txt keep.txt", "Edit(/src/keep.txt)", True), ("cd src && touch keep.txt", "Edit(/src/keep.txt)", True), ("tar -xf a.tar -C src", "Edit(/src/**)", False), ("tar -xf a.tar", "Edit(keep.txt)", None), ("unzip a.zip -d src", "Edit(/src/keep.txt)", None),
    ("cat keep.txt | tee keep.txt", "Edit(keep.txt)", True), ("echo a > ./src/../keep.txt", "Edit(keep.txt)", True), ("echo a > k'eep'.txt", "Edit(keep.txt)", True), ("bash -c 'echo a > keep.txt'", "Edit(keep.txt)", False), ("xargs touch keep.txt < a.txt", "Edit(keep.txt)", False), ("timeout 5 touch keep.txt", "Edit(keep.txt)", True), ("sudo touch keep.txt", "Edit(keep.txt)", False), ("gzip keep.txt", "Edit(keep.txt)", False), ("rsync -a t/ src/", "Edit(/src/**)", False),
    ("cp keep.txt out.txt", "Read(keep.txt)", True), ("cat keep.txt", "Read(keep.txt)", True), ("cat < keep.txt", "Read(keep.txt)", True), ("grep x keep.txt", "Read(keep.txt)", True), ("head -n1 src/keep.txt", "Read(/src/**)", True), ("echo a > keep.txt", "Read(keep.txt)", True), ("mv keep.txt out.txt", "Read(keep.txt)", True), ("diff a.txt keep.txt", "Read(keep.txt)", True), ("sort keep.txt", "Read(keep.txt)", True), ("sed -n 1p keep.txt", "Read(keep.txt)", True), ("git show HEAD:keep.txt", "Read(keep.txt)", False), ("git diff keep.txt", "Read(keep.txt)", False), ("git blame keep.txt", "Read(keep.txt)", False),
    ("git show HEAD:./src/keep.txt", "Read(/src/**)", False), ("git log -L1,2:keep.txt", "Read(keep.txt)", False), ("grep -r x .", "Read(keep.txt)", False), ("grep -r x src", "Read(/src/keep.txt)", False), ("rg x", "Read(keep.txt)", False), ("rg x src", "Read(/src/**)", False), ("diff -r src old", "Read(/src/**)", False), ("cat src/*.txt", "Read(/src/keep.txt)", None), ("cat $(git ls-files)", "Read(keep.txt)", None), ("cd src && cat keep.txt", "Read(/src/keep.txt)", True), ("cat /etc/hosts", "Read(//etc/**)", True), ("cat ~/notes", "Read(~/notes)", True), ("wc -l keep.txt", "Read(keep.txt)", True), ("cat ./src/../keep.txt", "Read(keep.txt)", True), ("cat k\\eep.txt", "Read(keep.txt)", True), ("xxd keep.txt", "Read(keep.txt)", False), ("jq . keep.json", "Read(keep.json)", False), ("awk '{print}' keep.txt", "Read(keep.txt)", False), ("git grep x -- keep.txt", "Read(keep.txt)", False), ("find src -name '*.txt' -print0 | xargs -0 cat", "Read(/src/**)", False), ("tail -f keep.txt", "Read(keep.txt)", True), ("base64 keep.txt", "Read(keep.txt)", False), ("tar cf x.tar src", "Read(/src/**)", None), ("cp -r src out", "Read(/src/keep.txt)", None), ("git log -p", "Read(keep.txt)", False), ("git show", "Read(keep.txt)", False), ("git diff", "Read(keep.txt)", None),
)  # fmt: skip
"""A command, a rule for a path, and whether that denies (True), at least asks (False), or only the
look at run time can know (None)."""


def _make_denied_path_rows() -> list[Row]:
    found: list[Row] = []
    for text, rule, sure in DENIED_BY_RESULT:
        clause = "C23" if text.startswith(("git", "grep -r", "rg", "diff -r", "find")) else "C17"
        case = Case(f"{text} against {rule}", text, clause)
        for allow in ((), ("Bash",)):
            rules = RuleSet(
                f"deny {rule}, allow {allow}",
                "whole",
                allow,
                deny=(rule,),
                hit={True: "deny", False: "reach", None: "maybe"}[sure],
            )
            found += [make_row("deny by path", case, rules, mode) for mode in MODES]
    return found


DESTRUCTIVE = [
    Case(text, text, "C25", text.split()[0], edits=None)
    for text in ("rm -rf build", "rm -rf build dist", "rm -r src/old", "rm -f a.txt b.txt", "rm -rf ./build", "rm -rf /repo/build", "rm -fr build/", "rm -rf -- build", "rm a.txt", "git reset --hard", "git clean -fdx", "git checkout -- .", "git checkout .", "git stash drop", "git stash clear", "git branch -D x", "git restore .", "truncate -s 0 a.txt", "git reset --hard HEAD~1", "git clean -fd", "git rm -r src", "shred -u a.txt", "git rebase main", "git gc --prune=now", "git reflog expire --expire=now --all", "git worktree remove --force w", "rmdir build", "git stash", "git push origin main", "git push", "docker run --rm x", "kubectl get pods", "terraform plan", "aws s3 ls", "docker ps")
]  # fmt: skip
FIND_RUNS = [
    Case(text, text, "C25", "find", prefix=False)
    for text in ("find . -name '*.pyc' -delete", "find . -delete", "find src -name x -exec rm {} \\;", "find src -exec rm -rf {} +", "find . -execdir zz {} \\;", "find . -ok zz {} \\;", "find . -okdir zz {} \\;", "find build -mindepth 1 -delete", "find . -type f -exec chmod 644 {} +")
]  # fmt: skip

IRREVERSIBLE = (
    ("git push --force", "git push --force origin main", "git push --force"), ("git push -f", "git push -f origin main", "git push -f"), ("git push", "git push origin +main", "git push origin +main"), ("git push", "git push origin '+main'", "git push origin '+main'"), ("git push", "git push origin +HEAD:main", "git push origin +HEAD:main"), ("git push", "git push origin +refs/heads/main:refs/heads/main", "git push origin +refs/heads/main:refs/heads/main"), ("git push", "git push --force-with-lease", "git push --force-with-lease"), ("git push", "git push --force-with-lease=main origin main", "git push --force-with-lease=main"),
    ("git push", "git push origin main --force", "git push origin main --force"), ("git push", "git push origin main -f", "git push origin main -f"), ("git push", "git push --mirror", "git push --mirror"), ("git push", "git push --mirror origin", "git push --mirror"), ("git push", "git push --delete origin b", "git push --delete"), ("git push", "git push -d origin b", "git push -d"), ("git push", "git push origin :b", "git push origin :b"), ("git push", "git push origin --delete b", "git push origin --delete"), ("git push", "git push -uf origin main", "git push -uf"), ("git push", "git push -fu origin main", "git push -fu"), ("git push", "git push -u -f origin main", "git push -u -f"), ("git push", "git push --prune origin", "git push --prune"),
    ("git push", "git push --all --force", "git push --all --force"), ("git push", "git push --force --force-if-includes", "git push --force"), ("git push", "git push origin a :b", "git push origin a :b"), ("git push", "git push --no-verify -f", "git push --no-verify -f"), ("git push", "git push \"--force\"", ""), ("git push", "git push --for\\ce", ""), ("git push", "git push -q --force", "git push -q --force"), ("git push", "git  push  --force", "git push --force"), ("git push", "git -C sub push --force", ""), ("git push", "git --no-pager push --force", ""), ("git push", "timeout 5 git push --force", ""), ("git push", "git push --del origin b", ""), ("git push", "git push --mirr", ""),
    ("docker", "docker system prune", "docker system prune"), ("docker", "docker system prune -af", "docker system prune"), ("docker", "docker volume prune", "docker volume prune"), ("docker", "docker volume prune -f", "docker volume prune"), ("docker", "docker volume rm x", "docker volume rm"), ("docker", "docker container prune", "docker container prune"), ("docker", "docker --context x volume rm y", ""), ("docker", "docker -H h system prune", ""), ("podman", "podman system prune", "podman system prune"), ("podman", "podman volume rm x", "podman volume rm"),
    ("kubectl", "kubectl delete pod x", "kubectl delete"), ("kubectl", "kubectl delete -f x.yml", "kubectl delete"), ("kubectl", "kubectl -n a delete ns b", ""), ("kubectl", "kubectl --context=c delete ns b", ""), ("kubectl", "kubectl delete --all pods", "kubectl delete"), ("terraform", "terraform destroy", "terraform destroy"), ("terraform", "terraform destroy -auto-approve", "terraform destroy"), ("terraform", "terraform apply -destroy", "terraform apply -destroy"), ("terraform", "terraform -chdir=x destroy", ""), ("tofu", "tofu destroy", "tofu destroy"), ("pulumi", "pulumi destroy", "pulumi destroy"),
    ("aws", "aws s3 rm s3://b --recursive", "aws s3 rm"), ("aws", "aws s3 rm --recursive s3://b", "aws s3 rm"), ("aws", "aws s3 rb s3://b --force", "aws s3 rb"), ("aws", "aws s3 rb s3://b", "aws s3 rb"), ("aws", "aws ec2 terminate-instances --instance-ids i", "aws ec2 terminate-instances"), ("aws", "aws rds delete-db-instance --x y", "aws rds delete-db-instance"), ("aws", "aws dynamodb delete-table --table-name t", "aws dynamodb delete-table"), ("aws", "aws --profile p s3 rb s3://b", ""), ("aws", "aws s3api delete-bucket --bucket b", "aws s3api delete-bucket"), ("gcloud", "gcloud compute instances delete x", "gcloud compute instances delete"), ("gcloud", "gcloud projects delete p", "gcloud projects delete"), ("gcloud", "gcloud --project p sql instances delete x", ""), ("gsutil", "gsutil rm -r gs://b", "gsutil rm"), ("gsutil", "gsutil -m rm -r gs://b", ""), ("az", "az group delete -n x", "az group delete"), ("az", "az vm delete -n x", "az vm delete"),
    ("", "mkfs.ext4 /dev/sda1", ""), ("", "mkfs -t ext4 /dev/sdb", ""), ("", "mkfs.xfs -f /dev/sdb1", ""), ("", "wipefs -a /dev/sda", ""), ("", "sudo mkfs.ext4 /dev/sda1", ""), ("dd", "dd if=a.img of=/dev/sda", ""), ("dd", "dd of=/dev/nvme0n1 if=a.img bs=1M", ""), ("", "mkswap /dev/sdb2", ""),
)  # fmt: skip


def _make_irreversible_rows() -> list[Row]:
    found: list[Row] = []
    for program, text, form in IRREVERSIBLE:
        case = Case(text, text, "C25", program, prefix=False, exact=True, whole=False)
        rules = [NO_RULE, WHOLE]
        if program:
            # A rule for a program that does nothing else names the form: left out.
            rules.append(RuleSet("content rule", "prefix", (f"Bash({program.split()[0]}:*)",)))
        if program.startswith("git push"):
            rules.append(RuleSet("sub-command rule", "prefix", ("Bash(git push:*)",)))
        found += cross("irreversible", [case], MODES, rules)
        if form:
            named = RuleSet("a rule that names the form", "exact", (f"Bash({form}:*)",))
            found += cross("irreversible", [case], ("default", "dontAsk"), [named])
            both = RuleSet(
                "Bash and a rule that names the form", "exact", ("Bash", f"Bash({form}:*)")
            )
            found += cross("irreversible", [case], ("default",), [both])
    for text in (
        "sudo git push --force",
        "bash -c 'git push --force'",
        "cd sub && git push -f",
        "git fetch && git push --force",
        "if true; then git push -f; fi",
        "(docker system prune -f)",
        "sh -c 'terraform destroy'",
        "echo $(kubectl delete pod x)",
        "env A=1 git push -f",
        "nohup docker volume rm x",
        "xargs kubectl delete pod < a.txt",
    ):
        case = Case(text, text, "C25", "git", whole=False)
        found += cross("irreversible", [case], ("default", "dontAsk", "bypassPermissions"), [WHOLE])
    return found


CRITICAL_TARGETS = ("/", "/*", "~", "~/", "$HOME", '"$HOME"', "${HOME}", "/etc", "/usr", "/home", "/home/dev", "/var", "/bin", "/repo", "/repo/", ".", "./", "..", "../..", ".git", "./.git", "/repo/.git", ".git/", "/usr/../etc", "//etc", "/etc/", "src/..", "src/../.git", "'/'", "\\/", "/lib", "/opt", "/root", "/boot", "/dev", "/sbin", "sub/.git")  # fmt: skip
CRITICAL_FORMS = (
    "rm -rf {}",
    "rm -r {}",
    "rm -fr {}",
    "rm -rf -- {}",
    "rm -rf build {}",
    "rm --recursive --force {}",
    "rm -Rf {}",
    "/bin/rm -rf {}",
    "\\rm -rf {}",
    "rm {} -rf",
)
CRITICAL_CARRIERS = ("sudo rm -rf {}", "timeout 5 rm -rf {}", "(rm -rf {})", "ls; rm -rf {}", "bash -c 'rm -rf {}'", "env rm -rf {}", "nohup rm -rf {} &", "command rm -rf {}", "xargs rm -rf {} < a.txt", "echo $(rm -rf {})", "if true; then rm -rf {}; fi", "eval 'rm -rf {}'", "A=1 rm -rf {}", "nice -n 5 rm -rf {}")  # fmt: skip


def _make_critical_cases() -> list[Case]:
    texts = [CRITICAL_FORMS[0].format(target) for target in CRITICAL_TARGETS]
    texts += [
        form.format(target) for form in CRITICAL_FORMS[1:] for target in ("/", "~", ".git", "/repo")
    ]
    texts += [form.format(target) for form in CRITICAL_CARRIERS for target in ("/", "/etc", ".git")]
    texts += [
        "cd / && rm -rf etc",
        "cd .. && rm -rf repo",
        "cd /repo && rm -rf .git",
        "cd src && rm -rf ../.git",
        "rm -rf --no-preserve-root /",
    ]
    return [
        Case(text, text, "C25", "rm", prefix=False, whole=False, exact=None, bypass=False)
        for text in dict.fromkeys(texts)
    ]


OPEN_REMOVALS = [
    Case(text, text, "C25", "rm", prefix=None, whole=None, exact=None, bypass=None, note="whether this is a working directory itself cannot be read off")
    for text in ("rm -rf *", "rm -rf ./*", 'rm -rf "$x"', "rm -rf $x", "rm -rf $x/*", "rm -rf .*", "rm -rf $PWD", "rm -rf \"${HOME:?}\"", "find . -delete", "git rm -r .", "rm -rf {a,/}", "mv .git x")
]  # fmt: skip
OUTSIDE_REMOVALS = [
    Case(text, text, "C25", "rm", prefix=False, whole=False, exact=None)
    for text in ("rm -rf /tmp/x", "rm -rf ../other", "rm ~/notes.txt", "rm -rf /etc/x/y", "rm -rf /home/dev/x", "rm /var/log/x", "rm -rf src/../../x", "rm -rf /repo-evil/x", "cd src && rm -rf ../../x")
]  # fmt: skip


def make_rows() -> list[Row]:
    """Every writer and every destructive form."""

    def choose_short(case: Case) -> list[RuleSet]:
        return [NO_RULE, allow_program(case), WHOLE]

    def choose_with_exact(case: Case) -> list[RuleSet]:
        return [*choose_short(case), allow_text(case)]

    return [
        *_make_writer_rows(),
        *_make_deny_edit_rows(),
        *_make_denied_path_rows(),
        *cross("resulting path", RESULTING, ("default", "acceptEdits"), choose_short),
        *cross("resulting path", RESULTING, ("plan", "dontAsk", "bypassPermissions"), [WHOLE]),
        *cross("secret moves", SECRET_MOVES, ("default", "acceptEdits", "plan"), [NO_RULE]),
        *cross("trees", TREES, ("default", "plan", "dontAsk"), [NO_RULE]),
        *cross("trees", TREES, ("acceptEdits",), [NO_RULE, WHOLE]),
        *cross(
            "destructive",
            DESTRUCTIVE,
            ("default", "plan", "dontAsk", "bypassPermissions"),
            choose_with_exact,
        ),
        *cross("destructive", FIND_RUNS, MODES, choose_short),
        *_make_irreversible_rows(),
        *cross("critical rm", _make_critical_cases(), MODES, [NO_RULE, WHOLE]),
        *cross(
            "critical rm",
            _make_critical_cases(),
            ("default", "bypassPermissions"),
            lambda case: [allow_program(case)],
        ),
        *cross("critical rm", OPEN_REMOVALS, ("default", "plan"), choose_short),
        *cross(
            "outside rm",
            OUTSIDE_REMOVALS,
            ("default", "acceptEdits", "plan", "dontAsk"),
            choose_short,
        ),
    ]
