"""Every crate that is built in has a licence that deny.toml allows."""

import json
import re
import subprocess
import tomllib

from windrow_server import ROOT


def allowed():
    return set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])


def is_allowed(expression, licences):
    """Whether an SPDX expression of AND, OR and parentheses can be met by `licences`."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    python = []
    place = 0
    while place < len(words):
        word = words[place]
        if word in ("AND", "OR"):
            python.append(word.lower())
        elif word in ("(", ")"):
            python.append(word)
        else:
            if words[place + 1:place + 2] == ["WITH"]:
                word = " ".join(words[place:place + 3])
                place += 2
            python.append(str(word in licences))
        place += 1
    return eval(" ".join(python))  # only of the words written above


def test_expressions_are_understood():
    for expression, expected in [("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True),
                                 ("MIT AND GPL-3.0", False), ("MIT/Apache-2.0", True),
                                 ("(MIT OR GPL-3.0) AND ISC", True),
                                 ("Apache-2.0 WITH LLVM-exception", True),
                                 ("GPL-2.0 WITH Classpath-exception-2.0", False)]:
        assert is_allowed(expression, allowed()) == expected, expression


def test_every_dependency_has_an_allowed_licence():
    command = ["cargo", "metadata", "--format-version", "1", "--all-features"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    packages = json.loads(output)["packages"]
    licences = allowed()
    wrong = [f"{package['name']} {package['version']}: {package['license']}"
             for package in packages if not is_allowed(package["license"] or "None", licences)]
    assert packages and wrong == []
