#!/usr/bin/env python3
"""Words that Recoll finds and Windrow does not.

    bench/w6/words.py [--windrow PATH] [--kinds html,pdf] [--files N] [--show N]

Both index the same files of a kind (`corpus.py`; all if there are fewer than N, mails one by one). The
terms that Recoll stores without a prefix are its words: without capitals, diacritics and stems. A pair is
a file and a word of it. It is missing if a search for exactly this word, as `windrow search '"word"'` does
it, does not find the file. Each missing pair gets a class by what the text that Windrow stored has in the
place of the word. Writes bench/out/w6/words.json.

Needed: recollindex and xadump (Debian: recollcmd), PyMongo.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from corpus import chosen_kinds  # noqa: E402
from windrow_server import Server  # noqa: E402

OUT = HERE.parent / "out" / "w6"
FILES = OUT / "files"
KINDS = ["html", "mail", "office", "pdf", "text", "source"]
TARGET = 0.005
# Debian's Python has the modules that Recoll's filters use.
ENVIRONMENT = {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"}
WORD_BYTES_MAX = 200
# The fields of a document that people search, beside its text.
FIELDS = ["title", "subject", "keywords", "author", "from", "to", "cc", "filename", "path"]


def sample(kind, count, folder):
    """Links files of a kind, evenly spread, into a folder. A mailbox holds hundreds of mails."""
    files = sorted(path for path in (FILES / kind).rglob("*") if path.is_file())
    if kind == "mail":
        files = files[::8]
    elif len(files) > count:
        files = [files[number * len(files) // count] for number in range(count)]
    for path in files:
        target = folder / path.relative_to(FILES / kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target)


def recoll_words(folder, work, count):
    """The words of each file, or of each of the first mails: a dict of sets."""
    config = work / "recoll"
    config.mkdir()
    (config / "recoll.conf").write_text(f"topdirs = {folder}\nskippedNames =\n")
    subprocess.run(["recollindex", "-c", config, "-z"], env=ENVIRONMENT, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    index = config / "xapiandb"
    last = int(re.search(r"lastdocid (\d+)", xadump(index, "-i", "1", "-D")).group(1))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        documents = list(pool.map(lambda number: document(index, number), range(1, last + 1)))
    words = collections.defaultdict(set)
    for name, terms in filter(None, documents):
        if name is not None:
            words[name] |= terms
    return dict(list(words.items())[:count])


def document(index, number):
    """The name and the words of a document of Recoll's index."""
    lines = xadump(index, "-i", str(number), "-D").splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    url = fields.get("url", "")
    if not url.startswith("file://") or fields.get("mtype") in ("inode/directory", None):
        return None
    terms = xadump(index, "-i", str(number), "-T", "-l", "-n").splitlines()[2:]
    # Prefixes are capitals; those of the text's ends are kept in brackets or marks.
    words = {term for term in terms if term and not term[0].isupper() and term[0] != ":"}
    path = os.fsencode(urllib.parse.unquote(url.removeprefix("file://")))
    inner = fields.get("ipath", "").split(":")[0]
    if fields["mtype"] == "application/mbox":
        return None
    return (os.fsdecode(path), inner), words


def xadump(index, *arguments):
    ended = subprocess.run(["xadump", "-d", index, *arguments], capture_output=True, check=True)
    return ended.stdout.decode(errors="replace")


def windrow_name(document):
    """The name in the form of Recoll's: the path of the file, and the number of a mail."""
    mail = re.match(r"#(\d+)", document.get("inner", ""))
    return document["path"], mail.group(1) if mail else ""


class Index:
    """The files as Windrow indexed them, behind a server."""

    def __init__(self, program, folder, work, server):
        subprocess.run([program, "index", folder, "--data", work / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        self.program, self.data = program, work / "data"
        server.start()
        self.documents = server.client().files.documents
        self.stage = self.search_stage()
        self.text, self.dates = collections.defaultdict(str), {}
        for one in self.documents.find({}, {"text": 1, "inner": 1, "date": 1, **dict.fromkeys(FIELDS, 1)}):
            name = windrow_name(one)
            self.text[name] += " ".join(
                [one.get("text") or "", *(str(one.get(field, "")) for field in FIELDS), ""])
            if name[1] and "date" in one:
                self.dates.setdefault(name, one["date"])

    def search_stage(self):
        """The stages for a word and for one with parts, as `windrow search` prints them."""
        stages = {}
        for kind, word in [("text", "placeholder"), ("phrase", "place-holder")]:
            shown = subprocess.run([self.program, "search", "--show-pipeline", f'"{word}"',
                                    "--data", self.data], capture_output=True, check=True)
            stage = json.loads(shown.stdout)[0]
            del stage["$search"]["highlight"]
            stages[kind] = (json.dumps(stage), json.dumps(word))
        return stages

    def find(self, word):
        """The names of the files that have this word."""
        shape, placeholder = self.stage["text" if word.isalnum() else "phrase"]
        stage = json.loads(shape.replace(placeholder, json.dumps(word)))
        return {windrow_name(one) for one in self.documents.aggregate([stage, {"$project": {"path": 1, "inner": 1}}])}


MARKS = r"[\W_]*"
# Reasons that are no fault: another search finds the file, or there is no word.
DATE = "a part of the date, which `date:` finds"


def folded(text):
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(one for one in decomposed if not unicodedata.combining(one))


def date_words(date):
    """The words of a date as the header of a mail has it."""
    return set(date.strftime("%a %d %b %Y %H %M %S +0000 -0000 %-d").lower().split()) if date else set()


def reason(word, text, date):
    """Returns what the text has in the place of a missing word."""
    word = folded(word)
    if word in date_words(date):
        return DATE
    if not any(one.isalnum() for one in word):
        return "marks only"
    if len(word) == 1 and ord(word) > 0x2E7F:
        return "a character of a script without spaces"
    if not text:
        return "the file has no text"
    if word in text:
        pieces = re.findall(r"[^\W_]+", word)
        return "a piece of a longer word" if len(pieces) == 1 else "words with marks, cut elsewhere"
    if re.search(MARKS.join(map(re.escape, word)), text):
        return "pieces of the text, joined"
    return "not in the text"


def compare(kind, arguments):
    with tempfile.TemporaryDirectory(dir=OUT) as work:
        work = Path(work)
        folder = work / "files"
        sample(kind, arguments.files, folder)
        words = recoll_words(folder, work, arguments.files)
        with Server(work, memory=1 << 30, start=False) as server:
            index = Index(arguments.windrow, folder, work, server)
            return missing_pairs(kind, words, index, str(folder))


def missing_pairs(kind, words, index, folder):
    files = collections.defaultdict(list)
    for name, terms in words.items():
        for term in terms:
            files[term].append(name)
    texts = {name: folded(index.text.get(name, "")) for name in words}
    missing = collections.defaultdict(list)
    for word, names in files.items():
        found = index.find(word) if len(word.encode()) <= WORD_BYTES_MAX else set()
        for name in names:
            if name not in found:
                missing[reason(word, texts[name], index.dates.get(name))].append((word, name))
    pairs = sum(map(len, words.values()))
    count = sum(map(len, missing.values()))
    return {
        "kind": kind, "files": len(words), "pairs": pairs, "missing": count,
        "percent": round(100 * count / max(pairs, 1), 3),
        "reasons": {why: len(found) for why, found in
                    sorted(missing.items(), key=lambda item: -len(item[1]))},
        "words": {why: most_frequent(found, folder) for why, found in missing.items()},
    }


def most_frequent(found, folder):
    """Words that are missing in most files, each with the files' number and one of them."""
    counts = collections.Counter(word for word, _ in found)
    where = {word: "#".join(filter(None, name)).removeprefix(folder + "/") for word, name in found}
    return [[word, count, where[word]] for word, count in counts.most_common(200)]


def table(rows):
    lines = ["| kind | files | pairs | missing | reasons |", "|---|---|---|---|---|"]
    for row in rows:
        percent = f"{row['percent']:.2f} %"
        if row["missing"] - row["reasons"].get(DATE, 0) > TARGET * row["pairs"]:
            percent = f"**{percent}**"
        reasons = "; ".join(f"{why} {count:,}" for why, count in row["reasons"].items())
        lines.append(f"| {row['kind']} | {row['files']} | {row['pairs']:,} | {row['missing']:,}, {percent} "
                     f"| {reasons} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windrow", default=os.environ.get("WINDROW", "target/release/windrow"))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--show", type=int, default=0, help="print so many words of each class")
    arguments = parser.parse_args()
    arguments.windrow = str(Path(arguments.windrow).resolve())
    os.environ["WINDROW"] = arguments.windrow
    for program in ("recollindex", "xadump"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not installed (Debian: recollcmd)")
    rows = []
    for kind in chosen_kinds(parser, arguments.kinds, KINDS):
        print(f"{kind} …", file=sys.stderr)
        rows.append(compare(kind, arguments))
        for why, words in rows[-1]["words"].items() if arguments.show else ():
            print(f"  {why}: {words[:arguments.show]}", file=sys.stderr)
    (OUT / "words.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False))
    print(table(rows))


if __name__ == "__main__":
    main()
