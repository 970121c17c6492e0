//! The documents of W1: random words or natural text.

use crate::calibration::{SortResult, stable_sort, write_bodies};
use crate::corpus::Corpus;
use crate::corpus::natural::{Cut, Natural};
use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::options::Options;
use crate::rival::{self, RivalFolder};

const DOCUMENTS: u64 = 600_000;
/// The default memory of a build in MB.
const BUILD_MEMORY: u64 = 200;

/// A corpus and the bodies of its documents as text.
pub struct Bodies<'a> {
    pub corpus: &'a dyn Corpus,
    pub documents: u64,
    pub body: &'a dyn Fn(u64, &mut Vec<u8>),
    /// Every document must be found by its longest word.
    pub distinct: bool,
}

impl Bodies<'_> {
    /// Sorts the words. Returns `None` if the baseline is not compiled.
    pub fn sort(&self, options: &Options) -> Result<Option<SortResult>, BenchError> {
        eprintln!("std::stable_sort of the same words");
        stable_sort(options, self.documents, self.body)
    }
}

impl Bodies<'_> {
    /// Returns the seconds in which tantivy builds an index of the words and their frequencies,
    /// with as many threads and as much memory. Returns `None` if it is not compiled.
    pub fn tantivy(&self, options: &Options) -> Result<Option<f64>, BenchError> {
        let folder = RivalFolder::create(options)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = options.build_megabytes.unwrap_or(BUILD_MEMORY) << 20;
        let language = match options.language.as_deref() {
            Some("none") => "none",
            _ => "english",
        };
        let arguments = [
            folder.argument(),
            options.cores.unwrap_or(cores).to_string(),
            memory.to_string(),
            language.to_owned(),
        ];
        let figures = rival::run(options, "tantivy", &arguments, |input| {
            write_bodies(input, self.documents, self.body)
        })?;
        figures.map(|figures| figures.get("seconds")).transpose()
    }
}

/// Calls `work` with the random words.
pub fn random<T>(
    options: &Options,
    work: impl FnOnce(&Bodies) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let words = Words { seed: options.seed };
    let body = |number: u64, out: &mut Vec<u8>| words.body(number, out);
    work(&Bodies {
        corpus: &words,
        documents: options.documents_of(DOCUMENTS),
        body: &body,
        distinct: true,
    })
}

/// Calls `work` with the text of the files below `folder`.
pub fn natural<T>(
    options: &Options,
    folder: &std::path::Path,
    work: impl FnOnce(&Bodies) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let natural = Natural::read(
        folder,
        options.documents_of(DOCUMENTS),
        Cut::Words(options.seed),
    )?;
    let body =
        |number: u64, out: &mut Vec<u8>| out.extend_from_slice(natural.body(number).as_bytes());
    work(&Bodies {
        corpus: &natural,
        documents: natural.documents(),
        body: &body,
        distinct: false,
    })
}
