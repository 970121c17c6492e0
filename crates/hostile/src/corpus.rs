//! Saved inputs: one file a target, one input a line, as hexadecimal digits; a line of `# …` tells the
//! story of the one below.

use std::path::{Path, PathBuf};

/// The file of a target's inputs.
pub fn path(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{target}.hex"))
}

/// The inputs in a file's text, with the numbers of their lines.
pub fn inputs(text: &str) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let lines = text.lines().zip(1..);
    let inputs = lines.filter(|(line, _)| !line.starts_with('#'));
    inputs.map(|(line, number)| (number, bytes(line).expect("hexadecimal digits")))
}

fn bytes(line: &str) -> Option<Vec<u8>> {
    let pairs = (0..line.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok())
        .collect()
}

/// An input as a line of a file.
pub fn line(input: &[u8]) -> String {
    input.iter().map(|byte| format!("{byte:02x}")).collect()
}
