"""Writes answers.txt: what PCRE2 10.42, which MongoDB has, finds with the patterns below.

Needs libpcre2-8 with that version. Run `python3 record.py` after a change of the cases.
"""

import ctypes
import ctypes.util
import itertools
import random
import re
from pathlib import Path

VERSION = b"10.42"
# The options are those with which MongoDB compiles a pattern.
UTF = 0x00080000
OPTIONS = {"i": 0x8, "m": 0x400, "s": 0x20, "x": 0x80}
NO_MATCH = -1

HEADER = """\
# Answers of PCRE2 10.42, written by record.py. Tab-separated; \\\\ \\n \\r \\t and \\u{hex} are escapes.
# Options, pattern, text, then the bytes of the match and of each group (~ for none), `none`, or `error`
# and why the pattern is refused.
"""


class Pcre:
    """The functions of the library."""

    def __init__(self):
        self.library = library = ctypes.CDLL(ctypes.util.find_library("pcre2-8"))
        size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint32
        library.pcre2_compile_8.restype = pointer
        library.pcre2_compile_8.argtypes = [
            ctypes.c_char_p, size, number, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(size), pointer]
        library.pcre2_match_data_create_from_pattern_8.restype = pointer
        library.pcre2_match_data_create_from_pattern_8.argtypes = [pointer, pointer]
        library.pcre2_match_8.argtypes = [
            pointer, ctypes.c_char_p, size, size, number, pointer, pointer]
        library.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(size)
        library.pcre2_get_ovector_pointer_8.argtypes = [pointer]
        library.pcre2_get_ovector_count_8.argtypes = [pointer]
        library.pcre2_code_free_8.argtypes = [pointer]
        library.pcre2_match_data_free_8.argtypes = [pointer]
        version = ctypes.create_string_buffer(64)
        library.pcre2_config_8(11, version)
        assert version.value.startswith(VERSION), version.value

    def message(self, code):
        buffer = ctypes.create_string_buffer(256)
        self.library.pcre2_get_error_message_8(code, buffer, len(buffer))
        return buffer.value.decode()

    def answer(self, options, pattern, text):
        code, offset = ctypes.c_int(), ctypes.c_size_t()
        bits = UTF | sum(OPTIONS[letter] for letter in options)
        source = pattern.encode()
        program = self.library.pcre2_compile_8(
            source, len(source), bits, ctypes.byref(code), ctypes.byref(offset), None)
        if not program:
            return f"error {self.message(code.value)}"
        found = self.library.pcre2_match_data_create_from_pattern_8(program, None)
        subject = text.encode()
        count = self.library.pcre2_match_8(program, subject, len(subject), 0, 0, found, None)
        assert count >= NO_MATCH, (pattern, text, self.message(count))
        answer = "none" if count == NO_MATCH else self.groups(found)
        self.library.pcre2_match_data_free_8(found)
        self.library.pcre2_code_free_8(program)
        return answer

    def groups(self, found):
        ends = self.library.pcre2_get_ovector_pointer_8(found)
        unset = ctypes.c_size_t(-1).value
        pairs = [(ends[2 * group], ends[2 * group + 1])
                 for group in range(self.library.pcre2_get_ovector_count_8(found))]
        return " ".join("~" if start == unset else f"{start}-{end}" for start, end in pairs)


# Each group: patterns, and the options and the texts with each of which every pattern is tried.
CLASSES_AND_CASES = (
    (r"[[:upper:]]+", r"[[:lower:]]+", r"[^[:lower:]]+", r"[[:^upper:]]+", r"[[:alpha:]]+",
     r"\p{Lu}+", r"\p{Ll}+", r"[\p{Ll}]+", r"[^\p{Ll}]+", r"[\P{Lu}]+", r"[\w]+", r"[\W]+",
     r"[^\W]+", r"[k\p{Lt}]+", r"[j-l]+", r"[^j-l]+", r"[K]+", r"[ſ]+", r"[ß]+", r"[ς]+",
     r"[Ǆ]", r"[a-c\p{Lu}]+", r"\p{L&}+", r"[\p{L&}]+", r"[^\p{L&}]+", r"\P{L&}+", r"\p{^L&}+",
     r"k+", r"ſ", r"(*UCP)[[:upper:]]+", r"(*UCP)[[:^lower:]]+", r"(*UCP)\w+", r"(*UCP)[\w]+",
     r"(*UCP)[\W]+", r"(*UCP)[[:alpha:]]+", r"\p{Any}+", r"\p{Lm}", r"\p{Xan}+", r"\p{Xwd}+",
     r"\p{Xps}", r"\p{Xsp}", r"\p{Xuc}+", r"\p{Greek}+", r"\p{sc:Greek}+", r"\p{scx:Greek}+",
     r"\p{L}+", r"\pL+", r"\p{ l u }+", r"\p{Script=Greek}+", r"\p{greek}+", r"\p{Alphabetic}+",
     r"\p{Lowercase}+"),
    ("", "i"),
    ("aBkſKÄäǅßẞσς1_", "k", "ς"),
)

FOLDED = (
    (r"(k)\1", r"(ſ)\1", r"(ß)\1", r"(ς)\1", r"(σ)\1", r"(ǆ)\1", r"(İ)\1", r"(ı)\1", r"(Ω)\1",
     r"(µ)\1", r"(ab)\1", r"(.)\1"),
    ("i",),
    ("kK", "Kk", "sſ", "ſS", "ßẞ", "ẞß", "ςΣ", "σς", "ΣΣ", "ǆǅ", "ǄǆǅǄ", "İi", "ii̇İ", "ıI", "iI",
     "ΩΩ", "µμ", "Μµ", "abAB"),
)

SETTINGS = (
    (r"(?^)a", r"(?^:a)A", r"(?^i:a)A", r"(?i)(?^)a", r"(?im)b(?^)a$", r"(?^m)^b", r"(?^-i)a",
     r"(?^x: a b )", r"(?n)(a)(?<b>B)", r"(?n:(A))(a)", r"(?-n)(a)", r"(?n)(a)(?-n)(b)",
     r"(?n)(?<x>a)\k<x>", r"(?n)(a)\1", r"(?xx)[a b] b", r"(?xx)[ a-b ]+ #", r"(?xx)[^ a]",
     r"(?x)[a b]+ b", r"(?x: a )b", r"(?-xx)a b", r"(?xx)(?x)[ a]+", r"(?xx)[ ]", r"(?xx)[a\ b]+",
     r"(?J)(?<n>a)|(?<n>b)", r"(?U)a+", r"(?-U)a+", r"(?i-s:a.)", r"(?i-)a", r"(?-)a", r"(?)a",
     r"(?ii)a", r"(?^)", r"(?^^)a", r"(?a)a", r"(?imnsx)a", r"(?z)a", r"(?i", r"(?i:", r"(?",
     r"(?-i", r"(?P", r"(?P>", r"(?<", r"(?^", "(?i-i)a", "a(?i)*", "a(?#x)*"),
    ("", "i", "x"),
    ("a", "A", "aB\na", "ab", "a b", "aabb"),
)

REFERENCES = (
    (r"\g{+1}(a)", r"(?:\g{+1}b|(a))+", r"(?:\g+1b|(a))+", r"(?:x|(a)|\g{+1}(b))+", r"(a)\g{+1}",
     r"(a)\g{-1}", r"(a)\g{-2}", r"(a)\g{0}", r"(a)\g0", r"(a)\g", r"(a)\g{}", r"(a)\g{1", r"(a)\gx",
     r"(?<n>a)\g{n}", r"(?<n>a)\k{n}", r"(?<n>a)\k'n'", r"(?<n>a)\k", r"(?<n>a)\kn", r"(?<n>a)\k<>",
     r"(?<n>a)\k<m>", r"(?<n>a)(?P=n)", r"(?<n>a)(?P=m)", r"(?<1n>a)", r"(?<n-m>a)", r"(?<>a)",
     r"(?<n>a)(?<n>b)", r"(a)\2", r"(a)\9", r"(a)\10", r"(a)\11", r"\8", r"\18", r"\81", r"\0",
     r"\01", r"\0011", r"\377", r"\400", r"\777", r"(a)\k{n", r"(a)\k<n", r"\g{+0}(a)",
     r"(a)\g{1}b", r"(a)\g1b", r"(a)\g{ 1 }", r"(?'n'a)\k'n'", r"(?<n" + "m" * 31 + ">a)",
     r"(?<n" + "m" * 32 + ">a)"),
    ("",),
    ("aa", "aab", "aba"),
)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
ESCAPES = (
    (*(rf"x\{letter}y" for letter in LETTERS), r"x\é", r"x\_y", r"x\ y", r"x\-y", "x\\\ny",
     *(rf"x[\{letter}]" for letter in LETTERS), r"[\é]", r"[\_]", r"[\-]", r"[\ ]", r"\ca", r"\c[",
     r"\c", r"\cé", r"[\c]", r"\x", r"\x4", r"\x41", r"\x411", r"\x{41}", r"\x{}", r"\x{g}", r"\x{41",
     r"\x{110000}", r"\x{d800}", r"\x{ 41 }", r"\o{101}", r"\o{}", r"\o{8}", r"\o{101", r"\o101",
     r"\o{4200000}", r"[\x41-\x43]+", r"[\101]", r"[\18]", r"[\8]", r"[\9]", r"\N{U+41}",
     r"\N{U+110000}", r"\N{U+}", r"\N{name}", r"\N{2}", r"\N{2,3}", r"[\N{U+41}]", r"[\N]",
     r"\N{U+41", r"\N{u+41}", r"\p", r"\p{", r"\p{}", r"\pL", r"\p{Lx}", r"\p{L", r"[\p]", r"[\pL]",
     r"\pé", r"\p1", r"\Qa.b", r"\Q\E", r"a\Q\E*", r"a\E*", r"\Qab\E*", r"[\Qa]\E]", r"[\E]",
     r"[\Qa\E-c]", r"[a\E-c]", r"[a-\Qc\E]", r"[a-\Ec]", r"[\Q\Ea-c]", r"[^\E]]", r"\E*", "\\"),
    ("",),
    ("xAy", "xuy", "x8", "xyABC\u0001", "a.b]"),
)

BRACKETS = (
    (r"[]", r"[]a]", r"[^]a]", r"[a", r"[^", r"[", r"[b-a]", r"[a-]", r"[-a]", r"[a-b-c]", r"[\d-a]",
     r"[\d-\w]", r"[a-\d]", r"[[:alpha:]-z]", r"[a-[:digit:]]", r"[[:foo:]]", r"[[:alpha]]",
     r"[:alpha:]", r"[[.a.]]", r"[[=a=]]", r"[[:^alpha:]]", r"[[:^foo:]]", r"[[:word:]]",
     r"[[:ascii:]]", r"[[:xdigit:]]", r"[[:blank:]]", r"[[:cntrl:]]", r"[[:graph:]]", r"[[:print:]]",
     r"[[:punct:]]", r"[[:space:]]", r"[[:alnum:]]", r"[[:digit:]]", r"[[:<:]]a", r"a[[:>:]]",
     r"[[]", r"[a[b]", r"[a&&b]+", r"[a--b]", r"[a~~b]+", r"[\b]", r"[\d-]+", r"[--a]+", r"[a\]b]+",
     r"[.]", r"[*+?(){}|^$]+", r"[é-ü]+", r"[\h\v]+", r"[\H]", r"[\V]", r"[\s\S]+", r"[^\s\S]",
     r"[\w-]+", r"[a-\w]+", r"[[:alpha:][:digit:]]+", r"[[:alpha:]", "[[:a", "[\\"),
    ("", "x"),
    ("a", "-", "b]z:", "5 .", "a-b&é"),
)

REPEATS = (
    (r"a{2}", r"a{2,}", r"a{,2}", r"a{2,3}?", r"a{2}+", r"a{ 2 }", r"a{2", r"a{}", r"a{,}", r"a{x}",
     r"{2}", r"a{0}", r"a{0}b", r"(a){0}b", r"a**", r"a*+", r"a*?", r"a*?+", r"a++", r"a+++", r"a??",
     r"a???", r"*", r"+a", r"?", r"|*", r"(*a)", r"(|a)*", r"^*", r"^*a", r"$*", r"\b*a", r"\b+a",
     r"(?=a)*a", r"(?=a)+a", r"(?!a){2}b", r"(?=a){0}b", r"(?<=a)+b", r"\A*b", r"\G+a", r"\K*a",
     r"\K", r"(?i)*a", r"a(?#x)*", r"a{65535}", r"a{65536}", r"a{3,2}", r"a{99999999999}",
     r"(a*)*b", r"(a*)+", r"(a*?)*b", r"(a|b*)*", r"(?:a?){3}", r"(a?){3}", r"(a?)*?b", r"(a?)*+b",
     r"(?>a*)b", r"(?>a|ab)c", r"((a)|b)*", r"((a)|(b))*", r"(a)|b", r"(?:(a)|b)*", r"(a{2}){2}",
     r"(?U)a{1,2}", r"(?U)a{1,2}?", r"\R{2}", r"\X+", r"\N+", r".+", r".{2}", r"(.)*",
     r"(?:a|ab)(?:c|bcd)*"),
    ("", "s", "x"),
    ("aaab", "b", "ab\n", "abcd"),
)

POSITIONS = (
    (r"^", r"$", r"^$", r"a$", r"^b", r"\Aa", r"a\z", r"a\Z", r"\Z", r"\z", r"\Ga", r"\Gb", r"\bb",
     r"\Bb", r"\b", r"\B", r"$\n", r"$^", r"\n^", r"^\n", r"(?m)^b$", r"(?m)a$.^b", r"a(?=\n)",
     r"(?!\n)$", r"(?<=a)$", r"(?<!a)\n", r"(?<=^a)\n", r"(?<=\n)", r"(?<=a|\nb)", r"(?<=a+)b",
     r"(?<=a*)b", r"(?<=ab{1,3})", r"(?<=(a))\n", r"(?<!(a))b", r"(?=(a))", r"(?!(a))b", r"(?<=\Ka)",
     r"(?=a\K)", r"a\Kb?", r"(a\K\n)b", r"(?<=\R)b", r"(?<=\X)b", r"(?<=(?:ab|c)d)", r"(?<=a\b)",
     r"(?<=\1)(a)", r"(a)(?<=\1)", r"(?<=a(?=\n))\n", r"(?>a)$", r"(?<a)b", r"(?=", r"(?<=",
     r"(?=a))", r"((a)", r"a)", r"(?:", r"(", r")", r"()", r"(?:)", r"(?=)", r"(?!)", r"a||b",
     r"|a", r"a|", r"(|)"),
    ("", "m"),
    ("a\nb", "a\n", "\n", "ab\r\n", "é a", ""),
)

EXTENDED = (
    (r" a b", r"a #c", "a #c\nb", r"a\ b", r"[a b]+", r"a {2}", r"a{2 }", r"a + b", r"a +", r"( ?:a)",
     r"(?: a )", r"(?# c )a", r"\# a", r"[#]", "a\u0085b", "a\u200eb", "a\u2028b", "a\u000bb",
     "a\u00a0b", r"a \Q b\E", r"\x 41", r"a* +", r"a* ?", r"a (?#c) *"),
    ("", "x"),
    ("ab", "aa b", "a b", "#", "a#c"),
)

GROUPS = (CLASSES_AND_CASES, FOLDED, SETTINGS, REFERENCES, ESCAPES, BRACKETS, REPEATS, POSITIONS,
          EXTENDED)

RANDOM_CASES = 400
ATOMS = ["a", "b", "ab", "é", "k", "[ab]", "[^a]", ".", r"\w", r"\W", r"\d", r"\s", r"\b", r"\B", "^",
         "$", r"\A", r"\Z", "[[:alpha:]]", r"\p{Ll}", r"[^\p{Lu}k]", r"\1", r"\K", r"\R", r"\X", r"\n"]
NOT_REPEATED = {r"\b", r"\B", "^", "$", r"\A", r"\Z", r"\K"}
QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "{2}", "{0,2}", "{1,}?", "{1,3}+"]
OPENINGS = ["(", "(", "(?:", "(?>", "(?=", "(?!", "(?i:", "(?s:", "(?m:"]
LOOK_BEHINDS = ["(?<=a)", "(?<!a|.b)", r"(?<=^|\n)", r"(?<=[^k]\b)", "(?<!(a)b)"]


def random_pattern(choose, depth):
    parts = []
    for _ in range(choose.randint(1, 3)):
        if depth and choose.random() < 0.5:
            part = choose.choice(OPENINGS) + random_pattern(choose, depth - 1) + ")"
        else:
            part = choose.choice(ATOMS + LOOK_BEHINDS)
        parts.append(part if part in NOT_REPEATED else part + choose.choice(QUANTIFIERS))
    if depth and choose.random() < 0.2:
        parts.insert(choose.randint(0, len(parts)), "|")
    return "".join(parts)


def cases():
    choose = random.Random(1)
    for patterns, options, texts in GROUPS:
        for pattern, letters, text in itertools.product(patterns, options, texts):
            yield letters, pattern, text
    for _ in range(RANDOM_CASES):
        pattern = random_pattern(choose, 2)
        if r"\1" in pattern and not re.search(r"\((?!\?)", pattern):
            pattern = f"(b){pattern}"
        letters = choose.choice(["", "", "i", "m", "s", "ims"])
        text = "".join(choose.choice("aabbABékK1 \n") for _ in range(choose.randint(1, 9)))
        yield letters, pattern, text


def chosen_cases(pcre):
    """One case for each answer that a pattern has with some options, so that the file stays small."""
    seen = set()
    for options, pattern, text in cases():
        answer = pcre.answer(options, pattern, text)
        is_error = answer.startswith("error")
        key = (pattern, None if is_error else options, answer)
        if key not in seen:
            seen.add(key)
            yield options, pattern, text, answer


def escape(text):
    def one(character):
        if character in "\\\n\r\t":
            return {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
        return character if character.isprintable() else f"\\u{{{ord(character):x}}}"
    return "".join(map(one, text))


def main():
    lines = ("\t".join(map(escape, case)) for case in chosen_cases(Pcre()))
    Path(__file__).with_name("answers.txt").write_text(HEADER + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
