//! Detects the programming or markup language by file name or `#!` line. It is called "syntax",
//! because the language of a document is a natural one.

use crate::format::{Input, split_extension, take_prefix};

/// Lower-case file extensions and their languages.
const EXTENSIONS: &[(&str, &str)] = &[
    ("ada", "ada"),
    ("adb", "ada"),
    ("ads", "ada"),
    ("asm", "assembly"),
    ("s", "assembly"),
    ("awk", "awk"),
    ("bash", "shell"),
    ("sh", "shell"),
    ("zsh", "shell"),
    ("ksh", "shell"),
    ("fish", "shell"),
    ("bat", "batch"),
    ("cmd", "batch"),
    ("ps1", "powershell"),
    ("c", "c"),
    ("h", "c"),
    ("cocci", "coccinelle"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cxx", "cpp"),
    ("hh", "cpp"),
    ("hpp", "cpp"),
    ("hxx", "cpp"),
    ("clj", "clojure"),
    ("cljs", "clojure"),
    ("cmake", "cmake"),
    ("cs", "csharp"),
    ("fs", "fsharp"),
    ("vb", "basic"),
    ("css", "css"),
    ("scss", "css"),
    ("sass", "css"),
    ("less", "css"),
    ("d", "d"),
    ("dart", "dart"),
    ("diff", "diff"),
    ("patch", "diff"),
    ("el", "lisp"),
    ("lisp", "lisp"),
    ("scm", "scheme"),
    ("rkt", "scheme"),
    ("erl", "erlang"),
    ("hrl", "erlang"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("f", "fortran"),
    ("f90", "fortran"),
    ("for", "fortran"),
    ("go", "go"),
    ("gradle", "groovy"),
    ("groovy", "groovy"),
    ("hs", "haskell"),
    ("lhs", "haskell"),
    ("java", "java"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("scala", "scala"),
    ("js", "javascript"),
    ("mjs", "javascript"),
    ("cjs", "javascript"),
    ("jsx", "javascript"),
    ("ts", "typescript"),
    ("tsx", "typescript"),
    ("vue", "vue"),
    ("svelte", "svelte"),
    ("json", "json"),
    ("jsonl", "json"),
    ("ndjson", "json"),
    ("geojson", "json"),
    ("properties", "properties"),
    ("toml", "toml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("ini", "ini"),
    ("desktop", "ini"),
    ("url", "ini"),
    ("cfg", "ini"),
    ("conf", "ini"),
    ("jl", "julia"),
    ("lua", "lua"),
    ("m", "objective-c"),
    ("mm", "objective-c"),
    ("m4", "m4"),
    ("mk", "make"),
    ("ml", "ocaml"),
    ("mli", "ocaml"),
    ("nim", "nim"),
    ("nix", "nix"),
    ("pas", "pascal"),
    ("php", "php"),
    ("pl", "perl"),
    ("pm", "perl"),
    ("perl", "perl"),
    ("t", "perl"),
    ("proto", "protobuf"),
    ("py", "python"),
    ("pyi", "python"),
    ("pyx", "python"),
    ("r", "r"),
    ("rb", "ruby"),
    ("rake", "ruby"),
    ("rs", "rust"),
    ("sql", "sql"),
    ("swift", "swift"),
    ("tcl", "tcl"),
    ("sty", "tex"),
    ("tf", "terraform"),
    ("v", "verilog"),
    ("vhd", "vhdl"),
    ("vim", "vim"),
    ("xsd", "xml"),
    ("xsl", "xml"),
    ("xslt", "xml"),
    ("zig", "zig"),
];

/// Lower-case file names and their languages.
const FILE_NAMES: &[(&str, &str)] = &[
    ("makefile", "make"),
    ("gnumakefile", "make"),
    ("cmakelists.txt", "cmake"),
    ("dockerfile", "dockerfile"),
    ("rakefile", "ruby"),
    ("gemfile", "ruby"),
    ("configure.ac", "m4"),
    ("meson.build", "meson"),
    ("build.ninja", "ninja"),
];

/// Interpreters in a `#!` line and their languages. A version number can follow the name.
const INTERPRETERS: &[(&str, &str)] = &[
    ("python", "python"),
    ("perl", "perl"),
    ("ruby", "ruby"),
    ("node", "javascript"),
    ("lua", "lua"),
    ("tclsh", "tcl"),
    ("wish", "tcl"),
    ("php", "php"),
    ("gawk", "awk"),
    ("mawk", "awk"),
    ("awk", "awk"),
    ("rscript", "r"),
    ("guile", "scheme"),
    ("make", "make"),
    ("bash", "shell"),
    ("dash", "shell"),
    ("zsh", "shell"),
    ("ksh", "shell"),
    ("fish", "shell"),
    ("sh", "shell"),
];

/// The number of bytes of a `#!` line that are searched for an interpreter.
const SHEBANG_BYTES_MAX: usize = 200;

/// Returns the language of a file.
pub(crate) fn detect_syntax(input: &Input<'_>) -> Option<&'static str> {
    let name = input.name.to_ascii_lowercase();
    let file_name = name.rsplit('/').next().unwrap_or(&name);
    let by_name = find_syntax(FILE_NAMES, file_name);
    let by_extension = || find_syntax(EXTENSIONS, split_extension(file_name)?);
    by_name
        .or_else(by_extension)
        .or_else(|| parse_shebang(input.bytes))
}

fn find_syntax(table: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    let row = table.iter().find(|(word, _)| *word == key);
    row.map(|(_, language)| *language)
}

/// Returns the language of the first word that names an interpreter: `#!/usr/bin/env -S python3 -u`
/// is Python.
fn parse_shebang(bytes: &[u8]) -> Option<&'static str> {
    let rest = bytes.strip_prefix(b"#!")?;
    let line = rest.split(|&byte| byte == b'\n').next()?;
    let line = take_prefix(line, SHEBANG_BYTES_MAX);
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    line.split_whitespace().find_map(|word| {
        let program = word.rsplit('/').next()?;
        let is_version = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let row = INTERPRETERS
            .iter()
            .find(|(name, _)| program.strip_prefix(name).is_some_and(is_version));
        row.map(|(_, language)| *language)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_detected_by_name_or_interpreter() {
        let cases: [(&str, &[u8], Option<&str>); 12] = [
            ("a.php", b"<html><?php ?>", Some("php")),
            (
                "a.patch",
                b"From 0123 Mon\nFrom: x\nSubject: y\n",
                Some("diff"),
            ),
            ("src/main.rs", b"", Some("rust")),
            ("MAIN.C", b"", Some("c")),
            ("dir/Makefile", b"", Some("make")),
            ("run", b"#!/bin/sh\necho", Some("shell")),
            ("run", b"#!/usr/bin/env -S python3.11 -u\n", Some("python")),
            ("run", b"#!/usr/bin/perl", Some("perl")),
            ("run", b"#!/opt/shiny\n", None),
            ("README", b"words", None),
            (".rs", b"", None),
            ("notes.txt", b"", None),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(detect_syntax(&Input { name, bytes }), expected, "{name}");
        }
    }
}
