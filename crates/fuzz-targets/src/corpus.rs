//! Saved inputs. A target has a file with an input per line, in hexadecimal digits. A line that
//! starts with `#` describes the bug that the next input revealed.

use std::path::{Path, PathBuf};

/// The path of a target's corpus.
pub fn path(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{target}.hex"))
}

/// Parses the inputs of a corpus. Returns them with their line numbers.
pub fn parse_inputs(text: &str) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let lines = text.lines().zip(1..);
    let inputs = lines.filter(|(line, _)| !line.starts_with('#'));
    inputs.map(|(line, number)| (number, parse_hex(line).expect("hexadecimal digits")))
}

fn parse_hex(line: &str) -> Option<Vec<u8>> {
    let pairs = (0..line.len()).step_by(2);
    pairs
        .map(|offset| u8::from_str_radix(line.get(offset..offset + 2)?, 16).ok())
        .collect()
}

/// Formats an input as a line of a corpus.
pub fn format_input(input: &[u8]) -> String {
    input.iter().map(|byte| format!("{byte:02x}")).collect()
}
