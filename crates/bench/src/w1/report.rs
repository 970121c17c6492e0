//! Measures the factors of the time of a text index build: language, version, memory, cores and the
//! words. Compares it with `std::stable_sort` and GNU sort, and shows its phases, a profile, and
//! alternative maps for a document's terms. The result is the page `w1.html` with plots.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::bodies::{self, Bodies};
use super::build::build;
use super::inside::{self, InProcessFigures};
use super::svg::{Bars, escaped};
use crate::error::{At, BenchError};
use crate::measure::timed;
use crate::options::Options;
use crate::report::{HASH_START, Report, Row, hash};

/// A variant of the build: its name and its difference from the default.
type Variant = (&'static str, fn(&mut Options));

const VARIANTS: [Variant; 11] = [
    ("default", |_| {}),
    ("no stemming", |options| {
        options.language = Some("none".into())
    }),
    ("version 2", |options| options.text_version = Some(2)),
    ("version 2, no stemming", |options| {
        options.text_version = Some(2);
        options.language = Some("none".into());
    }),
    ("one core", |options| options.cores = Some(1)),
    ("one core, no stemming", |options| {
        options.cores = Some(1);
        options.language = Some("none".into());
    }),
    ("50 MB for the build", |options| {
        options.build_megabytes = Some(50)
    }),
    ("100 MB for the build", |options| {
        options.build_megabytes = Some(100)
    }),
    ("200 MB for the build", |options| {
        options.build_megabytes = Some(200)
    }),
    ("500 MB for the build", |options| {
        options.build_megabytes = Some(500)
    }),
    ("1024 MB for the build", |options| {
        options.build_megabytes = Some(1_024)
    }),
];

/// Variants of GNU sort: its locale, if not that of the environment, and its threads.
const SORTS: [(&str, Option<&str>, &str); 4] = [
    ("GNU sort, LC_ALL=C, 1 thread", Some("C"), "1"),
    ("GNU sort, LC_ALL=C, 2 threads", Some("C"), "2"),
    ("GNU sort, this locale, 1 thread", None, "1"),
    ("GNU sort, this locale, 2 threads", None, "2"),
];

struct Line {
    name: String,
    seconds: f64,
    /// The duration of std::stable_sort of the same words, the mean of before and after.
    sorted: Option<f64>,
    index_bytes: Option<f64>,
    peak_bytes: Option<f64>,
    hash: u64,
}

/// Runs all variants and writes the page.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let mut lines = bodies::random(options, |bodies| measure(options, bodies, "", &VARIANTS))?;
    if let Some(folder) = &options.natural {
        lines.extend(bodies::natural(options, folder, |bodies| {
            measure(options, bodies, "natural text: ", &VARIANTS[..6])
        })?);
    }
    let inside = bodies::random(options, |bodies| inside::measure(options, bodies))?;
    let row = |line: &Line| Row::new(&line.name, "s", line.seconds, line.sorted);
    let of_inside = |(name, seconds): &(String, f64)| Row::new(name, "s", *seconds, None);
    let hashes = lines.iter().map(|line| line.hash);
    let report = Report {
        workload: "w1-report",
        baseline: "std::stable_sort of the words",
        rows: lines
            .iter()
            .map(row)
            .chain(inside.all().map(of_inside))
            .collect(),
        hash: hashes.fold(HASH_START, |sum, item| hash(sum, &item.to_le_bytes())),
    };
    let path = options.rivals.join("w1.html");
    std::fs::create_dir_all(&options.rivals).at(options.rivals.display())?;
    std::fs::write(&path, page(&lines, &inside)).at(path.display())?;
    eprintln!("plots: {}", path.display());
    report.print(options)
}

/// Measures all variants and GNU sort, between two runs of std::stable_sort.
fn measure(
    options: &Options,
    bodies: &Bodies,
    prefix: &str,
    variants: &[Variant],
) -> Result<Vec<Line>, BenchError> {
    let before = bodies.sort(options)?;
    let mut lines = Vec::new();
    for (name, change) in variants {
        eprintln!("{prefix}{name}");
        let mut varied = options.clone();
        change(&mut varied);
        let built = build(&varied, bodies)?;
        lines.push(Line {
            name: format!("{prefix}{name}"),
            seconds: built.build_seconds,
            sorted: None,
            index_bytes: Some(built.index_bytes),
            peak_bytes: Some(built.peak_bytes),
            hash: built.hash,
        });
    }
    lines.extend(sorts(options, bodies, prefix)?);
    let after = bodies.sort(options)?;
    let sorted = before.zip(after);
    let sorted = sorted.map(|(before, after)| (before.seconds + after.seconds) / 2.0);
    lines.iter_mut().for_each(|line| line.sorted = sorted);
    Ok(lines)
}

/// Runs GNU sort of the words, a word per line.
fn sorts(options: &Options, bodies: &Bodies, prefix: &str) -> Result<Vec<Line>, BenchError> {
    let path = options
        .folder
        .join(format!("windrow-bench-words-{}", std::process::id()));
    let written = write_words(&path, bodies);
    let lines = written.and_then(|()| {
        let line = |(name, locale, threads): &(&str, Option<&str>, &str)| {
            Ok(Line {
                name: format!("{prefix}{name}"),
                seconds: gnu_sort(&path, *locale, threads)?,
                sorted: None,
                index_bytes: None,
                peak_bytes: None,
                hash: 0,
            })
        };
        SORTS.iter().map(line).collect()
    });
    // A failure is harmless: the file is temporary.
    let _ = std::fs::remove_file(&path);
    lines
}

fn write_words(path: &Path, bodies: &Bodies) -> Result<(), BenchError> {
    let mut out = BufWriter::new(std::fs::File::create(path).at(path.display())?);
    let mut body = Vec::new();
    for number in 0..bodies.documents {
        body.clear();
        (bodies.body)(number, &mut body);
        for word in body.split(u8::is_ascii_whitespace) {
            out.write_all(word).at(path.display())?;
            out.write_all(b"\n").at(path.display())?;
        }
    }
    out.flush().at(path.display())
}

fn gnu_sort(path: &Path, locale: Option<&str>, threads: &str) -> Result<f64, BenchError> {
    let mut sort = Command::new("sort");
    sort.arg(format!("--parallel={threads}")).arg(path);
    sort.stdout(Stdio::null());
    if let Some(locale) = locale {
        sort.env("LC_ALL", locale);
    }
    let (seconds, status) = timed(|| sort.status().at("sort"))?;
    if status.success() {
        Ok(seconds)
    } else {
        Err(BenchError::Rival(format!("sort ended with {status}")))
    }
}

fn page(lines: &[Line], inside: &InProcessFigures) -> String {
    let values = |of: &dyn Fn(&Line) -> Option<f64>| -> Vec<(String, f64)> {
        let value = |line: &Line| Some((line.name.clone(), of(line)?));
        lines.iter().filter_map(value).collect()
    };
    let plot = |title: &str, line: Option<f64>, of: &dyn Fn(&Line) -> Option<f64>| {
        let values = values(of);
        Bars {
            title,
            values: &values,
            line,
        }
        .draw()
    };
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>W1</title>\n\
         <h1>W1: building a text index</h1>\n",
    );
    out += &plot(
        "createIndexes over std::stable_sort of the same words",
        Some(1.0),
        &|line| Some(line.seconds / line.sorted?),
    );
    out += &plot("seconds", None, &|line| Some(line.seconds));
    out += &plot("the index, MB", None, &|line| Some(line.index_bytes? / 1e6));
    out += &plot("the server's memory at its peak, MB", None, &|line| {
        Some(line.peak_bytes? / 1e6)
    });
    let parts = [
        ("phases of a build in one process, seconds", &inside.phases),
        ("terms of all documents by map, seconds", &inside.maps),
    ];
    for (title, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
        let bars = Bars {
            title,
            values,
            line: None,
        };
        out += &bars.draw();
    }
    if !inside.phases.is_empty() {
        let _ = writeln!(
            out,
            "<h2>Where the time goes</h2>\n<object data=\"{}\" type=\"image/svg+xml\" \
             width=\"1200\"></object>",
            inside::FLAMES
        );
    }
    out += "<table>\n<tr><th>what<th>s<th>std::stable_sort, s<th>ratio\n";
    for line in lines {
        let sorted = line.sorted.map(|item| format!("{item:.2}"));
        let ratio = line
            .sorted
            .map(|item| format!("{:.2}", line.seconds / item));
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{:.2}<td>{}<td>{}",
            escaped(&line.name),
            line.seconds,
            sorted.unwrap_or_default(),
            ratio.unwrap_or_default()
        );
    }
    out + "</table></html>\n"
}
