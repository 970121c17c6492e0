"""A file uses only files below it: the references between the files of a crate have no cycles. The
test reads the `use` lines and the paths (`crate::a::B`, `super::b()`) of every file of
crates/*/src, and follows re-exports to the file that defines a name. A module and its submodules
may use each other, since they are one thing. A cycle through a third file counts in both cases.
Code for tests is not checked."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CRATES = sorted(path.parent.name for path in (ROOT / "crates").glob("*/src"))
# Modules that cannot be separated: a value may be a document, which consists of values.
ONE_THING = {"document": {("build",), ("document",), ("value",)}}

PATH = r"(?:[a-z_]\w*|crate|self|super)(?:\s*::\s*\w+)+"
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?[ \t]+)?use\s+([^;]+);", re.M)


def without_comments(text):
    """Returns the code alone. Comments and strings become blanks, and the lines keep their numbers.
    """
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    token = r'//[^\n]*|/\*.*?\*/|r#".*?"#|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\''
    return re.sub(token, blank, text, flags=re.S)


def without_tests(text):
    """Returns the code without items under `#[cfg(test)]`."""
    while found := re.search(r"#\[cfg\(test\)\]", text):
        end = re.compile(r"[;{]").search(text, found.end())
        close = end.end()
        depth = 1 if end.group() == "{" else 0
        while depth and close < len(text):
            depth += {"{": 1, "}": -1}.get(text[close], 0)
            close += 1
        cut = re.sub(r"[^\n]", " ", text[found.start():close])
        text = text[:found.start()] + cut + text[close:]
    return text


def branches(tree):
    """Yields the paths of a use tree. `a::{b, c::{d, e as f}}` is a::b, a::c::d and a::c::e, each
    with its local name."""
    tree = tree.strip()
    start = tree.find("{")
    if start < 0:
        path, _, alias = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::") if part.strip()]
        if parts[-1:] == ["self"] and len(parts) > 1:
            parts.pop()
        yield parts, alias.strip() or (parts[-1] if parts else "")
        return
    depth, inner, parts = 0, "", []
    for letter in tree[start + 1:tree.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(inner)
            inner = ""
        else:
            inner += letter
    for part in filter(str.strip, parts + [inner]):
        yield from branches(tree[:start] + part.strip())


class Module:
    """A file: the names that it re-exports, and the paths in it with their lines."""

    def __init__(self, file, text):
        self.file = file
        text = without_tests(without_comments(text))
        self.children = set(re.findall(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", text, re.M))
        self.handed_on, self.paths = {}, []
        for use in USE.finditer(text):
            line = text.count("\n", 0, use.start(2)) + 1
            for path, alias in branches(use.group(2)):
                if use.group(1):
                    self.handed_on[alias] = path
                else:
                    self.paths.append((path, line))
        blank = lambda use: re.sub(r"[^\n]", " ", use.group(0))
        rest = USE.sub(blank, text)
        for found in re.finditer(r"(?<![\w:])" + PATH, rest):
            line = rest.count("\n", 0, found.start()) + 1
            self.paths.append((re.split(r"\s*::\s*", found.group(0)), line))


def read(source):
    """Returns the modules of a crate by their names, tuples of their parts. () is the crate's own
    file."""
    modules = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        parts = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        if not any(part.endswith("_tests") for part in parts):
            modules[parts] = Module(file.relative_to(source), file.read_text())
    return modules


def defining(modules, name, path, seen=()):
    """Returns the module that defines the target of a path in `name`, or None if it is in another
    crate."""
    head, *rest = path
    if head == "crate":
        at = ()
    elif head == "self":
        at = name
    elif head == "super":
        at = name[:-1]
        while rest[:1] == ["super"]:
            at, rest = at[:-1], rest[1:]
    elif head in modules[name].children:
        at, rest = name, path
    else:
        return None
    while rest:
        if at + (rest[0],) in modules:
            at, rest = at + (rest[0],), rest[1:]
            continue
        further = modules[at].handed_on.get(rest[0]) if at in modules else None
        step = (at, rest[0])
        if further and step not in seen:
            return defining(modules, at, further + rest[1:], (*seen, step))
        break
    return at if at in modules else None


def edges(modules):
    """Returns what each module uses: {module: {module below: line}}."""
    taken = {name: {} for name in modules}
    for name, module in modules.items():
        for path, line in module.paths:
            below = defining(modules, name, path)
            if below is not None and below != name:
                taken[name].setdefault(below, line)
    return taken


def circles(taken):
    """Returns the sets of modules that reach each other (Tarjan's strongly connected components).
    """
    number, low, stack, found = {}, {}, [], []

    def visit(name):
        number[name] = low[name] = len(number)
        stack.append(name)
        for below in taken.get(name, ()):
            if below not in number:
                visit(below)
                low[name] = min(low[name], low[below])
            elif below in stack:
                low[name] = min(low[name], number[below])
        if low[name] == number[name]:
            circle = set()
            while name not in circle:
                circle.add(stack.pop())
            if len(circle) > 1:
                found.append(circle)

    sys.setrecursionlimit(10_000)
    for name in taken:
        if name not in number:
            visit(name)
    return found


def described(modules, taken, circle):
    return [f"{modules[name].file}:{line} takes from {modules[below].file}"
            for name in sorted(circle) for below, line in sorted(taken[name].items())
            if below in circle]


def check(source, one_thing=frozenset()):
    """Returns the lines that close cycles, each cycle once."""
    modules = read(source)
    taken = edges(modules)
    found = []
    for is_free in (lambda name, below: name[:len(below)] == below,
                    lambda name, below: below[:len(name)] == name):
        ties = {name: {below: line for below, line in all_below.items()
                       if not is_free(name, below) and not {name, below} <= one_thing}
                for name, all_below in taken.items()}
        for circle in circles(ties):
            lines = described(modules, ties, circle)
            if lines not in found:
                found.append(lines)
    return ["\n".join(lines) for lines in found]


@pytest.mark.parametrize("crate", CRATES)
def test_files_use_only_files_below_them(crate):
    found = check(ROOT / "crates" / crate / "src", ONE_THING.get(crate, frozenset()))
    assert not found, "\n\n".join(found)


def made_up(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return check(folder)


@pytest.mark.parametrize("files, expected", [
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "use crate::b::B;", "b.rs": "pub struct B;"}, []),
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "use crate::b::B;", "b.rs": "\nuse super::a::{self, A};"},
     ["a.rs:1 takes from b.rs\nb.rs:2 takes from a.rs"]),
    # A path without a `use`, a name that a third file re-exports, a renamed one, a nested list.
    ({"lib.rs": "mod a;\nmod b;\npub use a::A;", "a.rs": "fn a() { crate::b::b() }",
      "b.rs": "use crate::A as One;"}, ["a.rs:1 takes from b.rs\nb.rs:1 takes from a.rs"]),
    ({"lib.rs": "mod a;\nmod b;\nmod c;", "a.rs": "use crate::{b::{B, b}, c::C};",
      "b.rs": "use crate::c::{self};", "c.rs": "use crate::{\n    a::A,\n};"},
     ["a.rs:1 takes from b.rs\na.rs:1 takes from c.rs\nb.rs:1 takes from c.rs\n"
      "c.rs:1 takes from a.rs"]),
    # Comments, strings and tests do not count.
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "use crate::b::B;",
      "b.rs": "// use crate::a::A;\nconst B: &str = \"crate::a::A\";\n"
              "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"}, []),
    # A module and its submodule may use each other. With a third file there is a cycle, in both
    # directions.
    ({"lib.rs": "mod a;", "a.rs": "mod c;\nuse c::C;", "a/c.rs": "use super::A;"}, []),
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "mod c;\nuse c::C;", "a/c.rs": "use crate::b::B;",
      "b.rs": "use crate::a::A;"},
     ["a.rs:2 takes from a/c.rs\na/c.rs:1 takes from b.rs\nb.rs:1 takes from a.rs"]),
    ({"lib.rs": "mod a;\nmod b;", "a.rs": "mod c;\nuse crate::b::B;", "a/c.rs": "use super::A;",
      "b.rs": "use crate::a::c::C;"},
     ["a.rs:2 takes from b.rs\na/c.rs:1 takes from a.rs\nb.rs:1 takes from a/c.rs"]),
])
def test_a_circle_is_found_and_named(tmp_path, files, expected):
    assert made_up(tmp_path, files) == expected


if __name__ == "__main__":
    for crate in sys.argv[1:] or CRATES:
        for circle in check(ROOT / "crates" / crate / "src", ONE_THING.get(crate, frozenset())):
            print(crate, circle, sep="\n", end="\n\n")
