"""Random bash commands from a grammar, biased towards what two readers may read differently."""

from __future__ import annotations

import random
from collections.abc import Callable

LOOKING = [
    "ls",
    "cat",
    "head",
    "wc",
    "grep",
    "sort",
    "cut",
    "tr",
    "stat",
    "file",
    "du",
    "nl",
    "uniq",
    "seq",
    "which",
    "echo",
    "printf",
    "true",
]
WRITERS = ["cp", "mv", "ln", "tar", "install"]
CHANGING = ["rm", "tee", "touch", "evil", "curl", "npm", *WRITERS]
PROTECTED = [".git/hooks/x", ".git/config", ".git", ".mcp.json", ".env", ".vscode/a"]
FILES = [
    "a.txt",
    "b.txt",
    "src",
    "src/c.txt",
    "*.txt",
    "'sp ace'",
    '"q.txt"',
    "./a.txt",
    "-l",
    "-n",
]
SPECIAL = [*" \t\n;&|()<>$`'\"\\{}[]*?#!=~", "$(", "))", "&&", "||", "<<E\n", "\\\n"]


class Maker:
    """A source of random commands."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.calm = False

    def command(self) -> str:
        """One command text, sometimes damaged."""
        self.calm = self.random.random() < 0.5
        text = self.script(2 if self.calm else 3)
        if self.random.random() < (0.1 if self.calm else 0.25):
            text = self.damage(text)
        return text

    def command_for_rules(self) -> str:
        """A command that content rules are put to: evaluated text, writers, xargs."""
        self.calm = self.random.random() < 0.7
        text = self.pick(
            lambda: self.evaluation(1), lambda: self.writing(1), lambda: self.listing(1)
        )
        if self.random.random() < 0.3:
            text = f"{text}{self.random.choice(['; ', ' && ', chr(10)])}{self.simple(1)}"
        if self.random.random() < 0.1:
            text = self.damage(text)
        return text

    def damage(self, text: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randint(0, len(text))
            if self.random.random() < 0.4 and text:
                text = text[:at] + text[at + 1 :]
            else:
                text = text[:at] + self.random.choice(SPECIAL) + text[at:]
        return text

    def pick(self, *options: Callable[[], str] | str) -> str:
        chosen = self.random.choice(options)
        return chosen() if callable(chosen) else chosen

    def script(self, depth: int) -> str:
        parts = [self.statement(depth) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
        return self.random.choice(["; ", "\n", " && ", " || ", " & ", ";"]).join(parts)

    def statement(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.55:
            return self.simple(depth)
        inner = depth - 1
        return self.pick(
            lambda: f"{self.simple(inner)} | {self.simple(inner)}",
            lambda: f"{self.simple(inner)} |& {self.simple(inner)}",
            lambda: f"({self.script(inner)})",
            lambda: f"{{ {self.script(inner)}; }}",
            lambda: f"if {self.simple(inner)}; then {self.script(inner)}; fi",
            lambda: (
                f"if {self.simple(inner)}\nthen {self.script(inner)}\nelse {self.simple(inner)}\nfi"
            ),
            lambda: (
                f"for v in {self.word(inner)} {self.word(inner)}; do {self.script(inner)}; done"
            ),
            lambda: f'for v in a.txt b.txt; do cat "$v"; {self.simple(inner)}; done',
            lambda: f"while false; do {self.script(inner)}; done",
            lambda: f"until {self.simple(0)} || true; do {self.script(inner)}; done",
            lambda: (
                f"case {self.word(inner)} in a*) {self.script(inner)};; "
                f"*) {self.simple(inner)};; esac"
            ),
            lambda: f"! {self.simple(inner)}",
            lambda: f"time {self.simple(inner)}",
            lambda: f"f() {{ {self.script(inner)}; }}; f",
            lambda: f"[[ -n {self.word(inner)} ]] && {self.simple(inner)}",
            lambda: f"(( 1 + 2 )) && {self.simple(inner)}",
            lambda: f"x={self.name()}; $x {self.word(inner)}",
            lambda: f"x={self.word(inner)}; echo $x",
            lambda: f"cat <<E\n{self.word(inner)} {self.word(inner)}\nE\n{self.simple(inner)}",
            lambda: f"cat <<'E'\n{self.word(inner)} $(rm x)\nE\n{self.simple(inner)}",
            lambda: f"cat <<-E | {self.simple(0)}\n\t`{self.simple(0)}`\n\tE\n",
            lambda: f"cd src && {self.simple(inner)}",
            lambda: f"coproc {self.simple(inner)}",
            lambda: f"{self.simple(inner)} # {self.simple(0)}",
            lambda: f"echo $(cat <<E\n{self.word(inner)}\nE\n) {self.word(inner)}",
            lambda: f"echo $(case a in a) {self.simple(0)};; esac) {self.word(0)}",
            lambda: f"echo $(# {self.simple(0)}\n{self.simple(inner)}\n)",
            lambda: f"function f {{ {self.script(inner)}; }}; f",
            lambda: f"f() ( {self.script(inner)} ); f {self.word(0)}",
            lambda: f"a=({self.word(inner)} {self.word(inner)}); echo ${{a[0]}} ${{a[@]}}",
            lambda: f"a=({self.name()} x); ${{a[@]}}",
            lambda: f"case a in a) {self.simple(0)};& b) {self.simple(inner)};;& *) :;; esac",
            lambda: (
                f"if ! {self.simple(inner)}; then :; elif {self.name()}; then {self.simple(0)}; fi"
            ),
            lambda: (
                f"cat <<E <<'F'\n{self.word(inner)}\nE\n$({self.simple(0)})\nF\n{self.simple(0)}"
            ),
            lambda: f"cat <<E\nfoo\\\nE\n$({self.simple(0)})\nE\n{self.simple(inner)}",
            lambda: f"for ((i=0; i<1; i++)); do {self.script(inner)}; done",
            lambda: f'{self.simple(0)} <<< "$({self.simple(inner)})"',
            lambda: f"while read -r v; do {self.simple(inner)}; break; done <<< a.txt",
            lambda: f"x='{self.name().replace(chr(39), '')} y'; eval $x",
            lambda: f"x=a.txt; cd src; cat $x; cd ..; {self.simple(inner)}",
            lambda: self.evaluation(inner),
            lambda: self.writing(inner),
            lambda: self.listing(inner),
        )

    def evaluation(self, depth: int) -> str:
        """Text that bash evaluates a second time, or that only looks like it."""
        return self.pick(
            lambda: f"{self.value(depth)}; {self.use()}", lambda: self.subscript(depth)
        )

    def value(self, depth: int) -> str:
        """Something in x: a number, code, a file's content or a command's output."""
        inner = self.simple(0).replace("'", "")
        return self.pick(
            "x=3",
            "x=a.txt",
            f"x='$({inner})'",
            f"x='a[$({inner})]'",
            f"x='`{inner}`'",
            "x=$(<n.txt)",
            f"x=$({self.simple(max(depth, 0))})",
            "read x < n.txt",
            "read -r x y < n.txt",
            "mapfile -t x < n.txt",
            "x=${#HOME}",
            "x=$#",
            "y=x",
            f"declare x='a[$({inner})]'",
            "x=(1 2 3)",
            "x=$(seq 3)",
        )

    def use(self) -> str:
        return self.pick(
            "echo ${x@P}",
            'echo "${x@P}"',
            "echo ${x@Q}",
            "echo $((x))",
            "echo $((x + 1))",
            "echo $(( $x ))",
            'echo "$((x))"',
            "(( x )) && echo y",
            "let x",
            "let 'y = x'",
            "declare -i y=x; echo $y",
            "declare -i y; y=$x",
            "[[ x -eq 0 ]]",
            '[[ "$x" -gt 1 ]]',
            '[ "$x" -gt 1 ]',
            "test $x -gt 1",
            'test -v "$x"',
            "[[ -v $x ]]",
            "echo ${!x}",
            "echo ${!y}",
            "echo ${a[x]}",
            "echo ${a[$x]}",
            "echo ${HOME:x}",
            "echo ${HOME:0:x}",
            'printf -v "$x" 1',
            'printf "%d" $x',
            'read "$x" <<< 1',
            'unset "$x"',
            'wait -p "$x"',
            "cat <<E\n${x@P}\nE",
            "cat <<E\n$((x))\nE",
            "cat <<'E'\n${x@P}\nE",
            "cat <<< ${x@P}",
            "for v in $x; do echo $((v)); done",
            "for v in 1 2 3; do echo $((v)); done",
            "declare -n r=$x; echo $r",
            "echo ${a[@]:x}",
            "a[x]=1",
            "a=([x]=1)",
            "seq $x",
            "echo $x",
        )

    def subscript(self, depth: int) -> str:
        inner = self.simple(max(depth - 1, 0)).replace("'", "")
        return self.pick(
            f"test -v 'a[$({inner})]'",
            f"printf -v 'a[$({inner})]' x",
            f"read 'a[$({inner})]' < a.txt",
            f"let 'a[$({inner})]'",
            f"declare -i y='a[$({inner})]'",
            f"declare 'a[$({inner})]=1'",
            f"unset 'a[$({inner})]'",
            f"wait -p 'a[$({inner})]'",
            f"echo $((a[$({inner})]))",
            f"cat <<E\n$((a[$({inner})]))\nE",
            f"echo ${{a[$({inner})]}}",
            f"getopts a 'b[$({inner})]'",
            f"mapfile -t 'a[$({inner})]' < a.txt",
        )

    def place(self) -> str:
        """A file or directory, sometimes a protected one."""
        if self.random.random() < 0.25:
            return self.random.choice(PROTECTED)
        return self.random.choice(["a.txt", "b.txt", "src", "src/c.txt", "src/", ".", "new", "./b"])

    def writing(self, depth: int) -> str:
        a, b, c = self.place(), self.place(), self.place()
        return self.pick(
            f"cp {a} {b}",
            f"cp -r {a} {b}",
            f"cp -t {b} {a}",
            f"cp --target-directory={b} {a} {c}",
            f"cp -b -S n {a} {b}",
            f"cp {a} {self.word(depth)}",
            f"mv {a} {b}",
            f"mv -t{b} {a}",
            f"mv {a} {c} {b}",
            f"mv {a} e && cat e",
            f"ln -s {a} {b}",
            f"ln -sf {a} {b}; echo x > {b}",
            f"install -m 644 {a} {b}",
            f"install -D {a} {b}",
            f"install -d {b}",
            f"tar -cf {b} {a}",
            f"tar -xf {a} -C {b}",
            f"tar -cf a.tar {a} --checkpoint=1 --checkpoint-action=exec=evil",
            f"tar --to-command=evil -xf {a}",
            f"for f in a.txt b.txt; do cp $f {b}; done",
            f"x={b}; cp {a} $x",
            f"cd src && cp c.txt ../{b}",
            f"sed -in s/x/y/ {a}",
            f"echo x > {b}",
            f"echo x | tee {b}",
        )

    def listing(self, depth: int) -> str:
        """A producer of names and what xargs does with them."""
        lister = self.pick(
            "ls", "find . -name '*.txt'", "find . -print0", "git ls-files -z", "cat a.txt",
            "echo a.txt b.txt", "rg -l x",
        )  # fmt: skip
        options = self.pick("", "-0", "-n 1", "-r", "-P 2", "-I{}", "-d '\\n'", "-a a.txt", "-t")
        return f"{lister} | xargs {options} {self.pick(self.name, lambda: self.simple(depth))}"

    def simple(self, depth: int) -> str:
        words = [self.name(), *[self.word(depth) for _ in range(self.random.randint(0, 3))]]
        if self.random.random() < 0.15:
            words.insert(0, self.pick("x=1", "LC_ALL=C", f"x={self.word(0)}", "NO_COLOR=1"))
        if self.random.random() < 0.2:
            words.append(self.redirect(depth))
        text = " ".join(words)
        if self.random.random() < (0.02 if self.calm else 0.12):
            text = self.wrap(text)
        if self.random.random() < 0.05:
            text = text.replace(" ", " \\\n", 1)
        return text

    def wrap(self, text: str) -> str:
        quoted = "'" + text.replace("'", "'\\''") + "'"
        return self.pick(
            f"env x=1 {text}",
            f"timeout 5 {text}",
            f"nice {text}",
            f"nohup {text}",
            f"command {text}",
            f"builtin {text}",
            f"(exec {text})",
            f"echo a.txt | xargs {text}",
            f"eval {quoted}",
            f"bash -c {quoted}",
            f"sh -ec {quoted}",
            f"trap {quoted} EXIT",
            f"bash <<< {quoted}",
            f"echo {quoted} | sh",
            f"test -v 'a[$({text})]'",
            f"[[ 'a[$({text})]' -eq 0 ]]",
            f"env -S {quoted}",
            f"setsid {text}",
        )

    def name(self) -> str:
        looking = 0.97 if self.calm else 0.75
        name = self.random.choice(LOOKING if self.random.random() < looking else CHANGING)
        if self.random.random() < (0.97 if self.calm else 0.85):
            return name
        head, tail = name[:1], name[1:]
        return self.pick(
            f'"{name}"',
            f"'{name}'",
            f"\\{name}",
            f'{head}""{tail}',
            f"{head}'{tail}'",
            f"$'{name}'",
            f"$'\\x{ord(head):02x}'{tail}",
            f"{head}\\\n{tail}",
            f"{{{name},}}",
            f"{{{name},a.txt}}",
            f"$(echo {name})",
            f"${{u:-{name}}}",
            f"`echo {name}`",
            f"{head}${{u}}{tail}",
            f"{head}$u{tail}",
        )

    def word(self, depth: int) -> str:
        if self.calm and self.random.random() < 0.6:
            return self.random.choice(
                ["a.txt", "b.txt", "src", "'a;b'", '"x y"', "-l", "src/c.txt"]
            )
        if depth <= 0 or self.random.random() < 0.6:
            return self.pick(
                self.random.choice(FILES),
                self.random.choice(FILES),
                "$x",
                '"$x"',
                "${x}",
                "'a;b'",
                '"a && b"',
                "a#b",
                "\\;",
                "\\$x",
                "{a,b}",
                "{1..3}",
                "~",
                "$((1+2))",
                "$'a\\tb'",
                "${#x}",
                "${x:-a.txt}",
                '"a\\"b"',
                "[ab].txt",
                "=",
                "!",
                "$?",
                "a\\ b",
                "''",
                "?.txt",
                "%s",
            )
        inner = self.statement(depth - 1) if self.random.random() < 0.3 else self.simple(depth - 1)
        return self.pick(
            f"$({inner})",
            f'"$({inner})"',
            f"`{inner.replace('`', '')}`" if "\\" not in inner else "a",
            f"<({inner})",
            f"${{x:-$({inner})}}",
            f'"${{x:-$({inner})}}"',
            f'"a $({inner}) b"',
            f"$(( $({inner}) + 1 ))",
            f"'$({inner})'" if "'" not in inner else "a",
            f"${{x/a/$({inner})}}",
            f"${{x##$({inner})}}",
            "${x:-'a b'}",
            f"`echo \\`{inner}\\``" if "`" not in inner and "\\" not in inner else "a",
            f'"`{inner}`"' if not set(inner) & set('`\\"') else "a",
            f"a$({inner})b",
            f"{{a,$({inner})}}",
        )

    def redirect(self, depth: int) -> str:
        return self.pick(
            "2>&1",
            ">/dev/null",
            "2>/dev/null",
            "&>/dev/null",
            "< a.txt",
            "> out",
            ">> out",
            ">| out",
            "2> err",
            "&> out",
            "<> out",
            ">& out",
            "3>&1",
            ">&2",
            f"< {self.word(depth)}",
            f"<<< {self.word(depth)}",
            f"> {self.word(depth)}",
            "{fd}> out",
            ">out <a.txt",
        )
