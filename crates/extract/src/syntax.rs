//! Detection of a programming or markup language by file name or `#!` line.

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
    ("toml", "toml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("ini", "ini"),
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
    ("tex", "tex"),
    ("sty", "tex"),
    ("bib", "bibtex"),
    ("tf", "terraform"),
    ("v", "verilog"),
    ("vhd", "vhdl"),
    ("vim", "vim"),
    ("xml", "xml"),
    ("xsd", "xml"),
    ("xsl", "xml"),
    ("xslt", "xml"),
    ("svg", "xml"),
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

/// Returns the language of a file. `bytes` are its first bytes.
pub(crate) fn detect_syntax(name: &str, bytes: &[u8]) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let by_name = find_syntax(FILE_NAMES, &name);
    let by_extension = || find_syntax(EXTENSIONS, extension(&name)?);
    by_name
        .or_else(by_extension)
        .or_else(|| parse_shebang(bytes))
}

/// Returns the part after the last dot of the file name.
pub(crate) fn extension(name: &str) -> Option<&str> {
    let file = name.rsplit('/').next()?;
    let (stem, extension) = file.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then_some(extension)
}

fn find_syntax(table: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    let file = key.rsplit('/').next()?;
    table
        .iter()
        .find(|(word, _)| *word == file)
        .map(|(_, language)| *language)
}

/// Returns the language of the first word that names an interpreter: `#!/usr/bin/env -S python3 -u`
/// is Python.
fn parse_shebang(bytes: &[u8]) -> Option<&'static str> {
    let rest = bytes.strip_prefix(b"#!")?;
    let line = rest
        .split(|&byte| byte == b'\n')
        .next()?
        .get(..)
        .map(|l| l.get(..200).unwrap_or(l))?;
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    line.split_whitespace().find_map(|word| {
        let program = word.rsplit('/').next()?;
        INTERPRETERS
            .iter()
            .find(|(start, _)| {
                let rest = program.strip_prefix(start);
                rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
            })
            .map(|(_, language)| *language)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_detected_by_name_or_interpreter() {
        let cases: [(&str, &[u8], Option<&str>); 10] = [
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
            assert_eq!(detect_syntax(name, bytes), expected, "{name}");
        }
    }
}
