//! The output of a run: a table for people and a line of JSON for programs.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::process::Command;

use crate::error::{At, BenchError};
use crate::options::Options;

/// A measured figure, the baseline's figure in the same run, and the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the figure.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Our figure.
    pub ours: f64,
    /// The baseline's figure.
    pub baseline: Option<f64>,
    /// The target.
    pub target: Option<Target>,
}

/// The target of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Our figure, divided by the baseline's, must be at most this.
    RatioAtMost(f64),
    /// Our figure, divided by the baseline's, must be at least this.
    RatioAtLeast(f64),
    /// A bound on our own figure, in the row's unit.
    AtMost(f64),
    /// Our figure must be at least this.
    AtLeast(f64),
}

/// The result of a part of a run.
pub struct CaseResult {
    /// The measured figures.
    pub rows: Vec<Row>,
    /// A hash of the server's content.
    pub hash: u64,
}

/// The results of a run.
pub struct Report<'a> {
    /// The name of the workload.
    pub workload: &'a str,
    /// A description of the baseline.
    pub baseline: &'a str,
    /// The measured figures.
    pub rows: Vec<Row>,
    /// A hash of the server's results. It depends on the seed only.
    pub hash: u64,
}

impl Row {
    /// Creates a row without a target.
    pub fn new(name: impl Into<String>, unit: &'static str, ours: f64, rival: Option<f64>) -> Self {
        Self {
            name: name.into(),
            unit,
            ours,
            baseline: rival,
            target: None,
        }
    }

    /// Sets the target.
    pub fn with_target(self, target: Target) -> Self {
        Self {
            target: Some(target),
            ..self
        }
    }

    /// Our figure, divided by the baseline's.
    pub fn ratio(&self) -> Option<f64> {
        self.baseline.map(|baseline| self.ours / baseline)
    }

    /// Returns whether the target is reached. `None` if there is no target, or no baseline for it.
    pub fn holds(&self) -> Option<bool> {
        let (ratio, ours) = (self.ratio(), Some(self.ours));
        let reached = match self.target? {
            Target::RatioAtMost(limit) => ratio? <= limit,
            Target::RatioAtLeast(limit) => ratio? >= limit,
            Target::AtMost(limit) => ours? <= limit,
            Target::AtLeast(limit) => ours? >= limit,
        };
        Some(reached)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RatioAtMost(limit) => write!(to, "≤ {limit}"),
            Self::RatioAtLeast(limit) => write!(to, "≥ {limit}"),
            Self::AtMost(limit) => write!(to, "ours ≤ {}", format_grouped(*limit)),
            Self::AtLeast(limit) => write!(to, "ours ≥ {}", format_grouped(*limit)),
        }
    }
}

impl Report<'_> {
    /// Prints both forms, and appends the line of JSON to the file of `--results`.
    pub fn print(&self, options: &Options) -> Result<(), BenchError> {
        print!("{}", self.table());
        let line = self.json(options);
        println!("{line}");
        let Some(path) = &options.results else {
            return Ok(());
        };
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path)
            .at(path.display())?;
        writeln!(file, "{line}").at(path.display())
    }

    fn table(&self) -> String {
        let mut out = format!(
            "{:<48} {:>14} {:>14} {:>7}  {:<10} baseline: {}\n",
            self.workload, "ours", "baseline", "ratio", "target", self.baseline
        );
        for row in &self.rows {
            let (baseline, ratio) = match (row.baseline, row.ratio()) {
                (Some(baseline), Some(ratio)) => (format_grouped(baseline), format!("{ratio:.2}")),
                _ => ("–".to_owned(), "–".to_owned()),
            };
            let name = format!("{} [{}]", row.name, row.unit);
            let _ = writeln!(
                out,
                "{name:<48} {:>14} {baseline:>14} {ratio:>7}  {}",
                format_grouped(row.ours),
                format_target(row)
            );
        }
        out
    }

    fn json(&self, options: &Options) -> String {
        let rows: Vec<String> = self.rows.iter().map(row_json).collect();
        format!(
            "{{\"workload\":{},\"baseline\":{},\"rows\":[{}],\"machine\":{},\"commit\":{},\
             \"seed\":{},\"memory\":{},\"hash\":\"{:016x}\"}}",
            quote(self.workload),
            quote(self.baseline),
            rows.join(","),
            quote(&machine()),
            quote(&commit()),
            options.seed,
            options.memory_bytes,
            self.hash
        )
    }
}

fn format_target(row: &Row) -> String {
    let verdict = match row.holds() {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "",
    };
    row.target
        .map_or("–".to_owned(), |target| format!("{target} {verdict}"))
}

fn row_json(row: &Row) -> String {
    let or_null = |value: Option<f64>| value.map_or("null".to_owned(), number);
    format!(
        "{{\"name\":{},\"unit\":{},\"ours\":{},\"baseline\":{},\"ratio\":{},\
         \"target\":{},\"reached\":{}}}",
        quote(&row.name),
        quote(row.unit),
        number(row.ours),
        or_null(row.baseline),
        or_null(row.ratio()),
        row.target
            .map_or("null".to_owned(), |target| quote(&target.to_string())),
        row.holds()
            .map_or("null".to_owned(), |holds| holds.to_string())
    )
}

/// Formats a number with four significant digits, since measurements are not more precise.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    let digits = if value == 0.0 {
        0
    } else {
        3 - value.abs().log10().floor() as i32
    };
    format!("{value:.*}", digits.max(0) as usize)
}

/// Like [`number`], with separated thousands.
fn format_grouped(value: f64) -> String {
    let plain = number(value);
    if !value.is_finite() {
        return plain;
    }
    let (whole, rest) = plain
        .split_once('.')
        .map_or((plain.as_str(), None), |(a, b)| (a, Some(b)));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    rest.map_or(out.clone(), |rest| format!("{out}.{rest}"))
}

fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Processor, cores and memory.
fn machine() -> String {
    let line = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let found = text
            .lines()
            .find(|line| line.starts_with(name))?
            .split_once(':')?
            .1
            .trim();
        Some(found.to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    let memory = line("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".into());
    format!("{processor}, {cores} cores, {memory} memory")
}

fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    let text = output
        .ok()
        .filter(|item| item.status.success())
        .map(|item| item.stdout);
    String::from_utf8_lossy(&text.unwrap_or_default())
        .trim()
        .to_owned()
}

/// Returns the median: the middle value, or the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Returns the median of the baseline's figures, if there are any.
pub fn median_of_any(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median(values))
}

/// FNV-1a with 64 bits, continued from `hash` (start with [`HASH_START`]). Source:
/// <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The initial value of [`hash`].
pub const HASH_START: u64 = 0xCBF2_9CE4_8422_2325;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let check = |value: f64, expected: &str| assert_eq!(format_grouped(value), expected);
        check(475_123.4, "475,123");
        check(1_234_567.0, "1,234,567");
        check(0.43951, "0.4395");
        check(33.333, "33.33");
        check(0.0, "0");
        check(f64::NAN, "null");
    }

    #[test]
    fn tables_show_the_ratio() {
        let rows = vec![
            Row::new("a", "s", 3.0, Some(6.0)).with_target(Target::RatioAtMost(0.4)),
            Row::new("b", "1/s", 5.0, None),
        ];
        let report = Report {
            workload: "w",
            baseline: "sort",
            rows,
            hash: 0,
        };
        let table = report.table();
        let cells = |line: usize| -> Vec<&str> {
            table
                .lines()
                .nth(line)
                .unwrap()
                .split_whitespace()
                .collect()
        };
        assert_eq!(
            cells(1),
            ["a", "[s]", "3.000", "6.000", "0.50", "≤", "0.4", "MISSED"]
        );
        assert_eq!(cells(2), ["b", "[1/s]", "5.000", "–", "–", "–"]);
        let json = report.json(&Options::default());
        assert!(json.contains("\"name\":\"b\",\"unit\":\"1/s\",\"ours\":5.000,\"baseline\":null"));
    }

    #[test]
    fn targets_apply_to_the_ratio_or_our_figure() {
        let row = Row::new("a", "ms", 3.0, Some(6.0));
        let check = |target, expected| {
            assert_eq!(
                row.clone().with_target(target).holds(),
                expected,
                "{target}"
            )
        };
        check(Target::RatioAtMost(0.5), Some(true));
        check(Target::RatioAtLeast(0.6), Some(false));
        check(Target::AtMost(2.0), Some(false));
        check(Target::AtLeast(2.0), Some(true));
        let alone = Row::new("a", "ms", 3.0, None).with_target(Target::RatioAtMost(0.5));
        assert_eq!(alone.holds(), None);
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median_of_any(&[]), None);
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(HASH_START, b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(hash(HASH_START, b"a"), 0xAF63_DC4C_8601_EC8C);
    }
}
