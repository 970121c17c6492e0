//! The command line of a converter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The values of the placeholders in a command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placeholders<'a> {
    /// `%f`
    pub(crate) file: &'a Path,
    /// `%m`
    pub(crate) media_type: &'a str,
    /// `%d`
    pub(crate) folder: &'a Path,
}

/// How a converter gets the names of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileNaming {
    /// On its command line, one for each process.
    CommandLine,
    /// On its input, one after the other: the converter is persistent.
    Input,
}

/// Checks a command line: it must have a program and only known placeholders, and it must name the
/// file if the converter gets it there.
pub(crate) fn check_command(command: &[String], naming: FileNaming) -> Result<(), String> {
    if command.first().is_none_or(|program| program.is_empty()) {
        return Err("command: a program is missing".to_owned());
    }
    let mut has_file = false;
    for word in command.iter().skip(1) {
        let mut letters = word.chars();
        while letters.by_ref().any(|letter| letter == '%') {
            match letters.next() {
                Some('f') => has_file = true,
                Some('m' | 'd' | '%') => {}
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "command: %{other} is not known; there are %f, %m, %d and %%"
                    ));
                }
            }
        }
    }
    match (has_file, naming) {
        (false, FileNaming::CommandLine) => {
            Err("command: %f is missing, which is the file to convert".to_owned())
        }
        (true, FileNaming::Input) => Err(
            "command: a persistent converter gets its files on its input; leave out %f".to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Returns a word of a checked command line with its placeholders replaced.
pub(crate) fn expand(word: &str, placeholders: &Placeholders<'_>) -> OsString {
    let mut expanded = Vec::with_capacity(word.len());
    let mut bytes = word.bytes();
    while let Some(byte) = bytes.next() {
        let value = match (byte, byte == b'%') {
            (_, true) => match bytes.next() {
                Some(b'f') => placeholders.file.as_os_str().as_bytes(),
                Some(b'm') => placeholders.media_type.as_bytes(),
                Some(b'd') => placeholders.folder.as_os_str().as_bytes(),
                _ => b"%",
            },
            (byte, false) => {
                expanded.push(byte);
                continue;
            }
        };
        expanded.extend_from_slice(value);
    }
    OsString::from_vec(expanded)
}

/// Returns the path of a program. A name without a slash is searched in the folders of `PATH`.
pub fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    let folders = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(program));
    candidates.into_iter().find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Returns the arguments that are absolute paths, such as scripts.
pub(crate) fn named_files(command: &[String]) -> impl Iterator<Item = PathBuf> {
    let words = command.iter().skip(1).map(Path::new);
    let files = words.filter(|path| path.is_absolute() && path.is_file());
    files.map(Path::to_path_buf)
}

/// Returns the extension of a name if it is safe in every command line. It becomes the extension of
/// a copy.
pub(crate) fn safe_extension(name: &str) -> Option<&str> {
    const BYTES_MAX: usize = 12;
    let extension = Path::new(name).extension().and_then(OsStr::to_str)?;
    let is_safe =
        extension.len() <= BYTES_MAX && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    is_safe.then_some(extension)
}

#[cfg(test)]
mod tests {
    use super::FileNaming::{CommandLine, Input};
    use super::*;

    fn check(command: &[&str], naming: FileNaming, expected: Result<(), &str>) {
        let words: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let found = check_command(&words, naming);
        match expected {
            Ok(()) => assert_eq!(found, Ok(()), "{command:?}"),
            Err(part) => assert!(found.unwrap_err().contains(part), "{command:?}"),
        }
    }

    #[test]
    fn command_lines_are_checked() {
        check(&["djvutxt", "%f"], CommandLine, Ok(()));
        check(&["a", "100%%", "x=%f,%m,%d"], CommandLine, Ok(()));
        check(&["a"], Input, Ok(()));
        check(&[], Input, Err("program"));
        check(&[""], Input, Err("program"));
        check(&["a"], CommandLine, Err("%f is missing"));
        check(&["a", "%f"], Input, Err("leave out"));
        check(&["a", "%f", "%u"], CommandLine, Err("%u is not known"));
        check(&["a", "%f", "%"], CommandLine, Err("% is not known"));
    }

    #[test]
    fn placeholders_are_replaced() {
        let placeholders = Placeholders {
            file: Path::new("/d/%m.x"),
            media_type: "a/b",
            folder: Path::new("/t"),
        };
        let found = expand("-o%f:%m:%d:%%é", &placeholders);
        assert_eq!(found, "-o/d/%m.x:a/b:/t:%é");
    }

    #[test]
    fn programs_are_found() {
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program("/bin/sh"), Some("/bin/sh".into()));
        for missing in ["no-such-program", "/etc/passwd", "/etc", "sh/x"] {
            assert_eq!(find_program(missing), None, "{missing}");
        }
    }

    #[test]
    fn extensions_are_safe() {
        assert_eq!(safe_extension("a/b.djvu"), Some("djvu"));
        for name in ["a", "a.$(x)", "a.-", "a.toolongextension"] {
            assert_eq!(safe_extension(name), None, "{name}");
        }
    }
}
