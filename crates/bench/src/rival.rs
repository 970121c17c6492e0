//! Baselines: small programs of `bench/rivals`, which receive the same data through a pipe. A
//! baseline measures its own time, without reading its input, and prints lines with a name and a
//! number. A baseline that is not compiled (because its library is missing) is omitted from the
//! report.

use std::io::{BufWriter, ErrorKind, Write};
use std::process::{ChildStdin, Command, Stdio};

use crate::error::{At, BenchError};
use crate::options::Options;

/// The figures that a baseline printed, by name.
#[derive(Debug, PartialEq)]
pub struct Figures(Vec<(String, f64)>);

impl Figures {
    /// Returns a figure. Fails if the baseline did not print it.
    pub fn get(&self, name: &str) -> Result<f64, BenchError> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| BenchError::Rival(format!("printed no {name}")))
    }

    /// Returns the figures `name0`, `name1`, … up to the first missing one.
    pub fn series(&self, name: &str) -> Vec<f64> {
        (0..)
            .map_while(|place| self.get(&format!("{name}{place}")).ok())
            .collect()
    }

    /// Returns the figures with this prefix, without the prefix.
    pub fn beginning(&self, with: &str) -> impl Iterator<Item = (&str, f64)> {
        let figures = self.0.iter();
        figures.filter_map(move |(name, value)| Some((name.strip_prefix(with)?, *value)))
    }

    fn parse(text: &str) -> Result<Self, BenchError> {
        let figure = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let wrong = |line: &str| BenchError::Rival(format!("printed {line:?}"));
        text.lines()
            .map(|line| figure(line).ok_or_else(|| wrong(line)))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Runs the baseline `name` with the data that `feed` writes. Returns `None` if it is not compiled.
pub fn run(
    options: &Options,
    name: &str,
    arguments: &[String],
    feed: impl FnOnce(&mut BufWriter<ChildStdin>) -> std::io::Result<()>,
) -> Result<Option<Figures>, BenchError> {
    let path = options.rivals.join(name);
    if !path.exists() {
        eprintln!(
            "{} is not there: no baseline in this run (`make rivals`)",
            path.display()
        );
        return Ok(None);
    }
    let mut child = Command::new(&path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .at(path.display())?;
    if let Some(input) = child.stdin.take() {
        let mut input = BufWriter::with_capacity(1 << 20, input);
        match feed(&mut input).and_then(|()| input.flush()) {
            // A baseline with a time limit stops reading when the limit is reached.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(error).at("feeding the baseline");
            }
            _ => {}
        }
    }
    let output = child.wait_with_output().at(path.display())?;
    if !output.status.success() {
        return Err(BenchError::Rival(format!(
            "{name} ended with {}",
            output.status
        )));
    }
    Figures::parse(&String::from_utf8_lossy(&output.stdout)).map(Some)
}

/// An empty data folder for a baseline, removed on drop.
pub struct RivalFolder(std::path::PathBuf);

impl RivalFolder {
    /// Creates an empty folder.
    pub fn create(options: &Options) -> Result<Self, BenchError> {
        let path = options
            .folder
            .join(format!("windrow-bench-rival-{}", std::process::id()));
        // A killed run with the same process id may have left data behind, which would be measured,
        // too.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).at(path.display())?;
        Ok(Self(path))
    }

    /// The path as an argument of a baseline.
    pub fn argument(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for RivalFolder {
    fn drop(&mut self) {
        // A failure is harmless: the folder is temporary.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parsed() {
        let found = Figures::parse("seconds 1.5\ntenth0 10\ntenth1 9\n").unwrap();
        assert_eq!(found.get("seconds").ok(), Some(1.5));
        assert_eq!(found.series("tenth"), [10.0, 9.0]);
        assert_eq!(
            found.get("words").unwrap_err().to_string(),
            "the baseline: printed no words"
        );
    }

    #[test]
    fn other_output_is_an_error() {
        let wrong = Figures::parse("Segmentation fault").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the baseline: printed \"Segmentation fault\""
        );
    }
}
