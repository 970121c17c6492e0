//! The documents of W1: random words, or natural text.

use crate::calibration::{Sorted, stable_sort};
use crate::corpus::Corpus;
use crate::corpus::natural::Natural;
use crate::corpus::words::Words;
use crate::error::BenchError;
use crate::options::Options;

const DOCUMENTS: u64 = 600_000;

/// A corpus and its bodies as text.
pub struct Bodies<'a> {
    pub corpus: &'a dyn Corpus,
    pub documents: u64,
    pub body: &'a dyn Fn(u64, &mut Vec<u8>),
    /// every document must be found by its longest word
    pub distinct: bool,
}

impl Bodies<'_> {
    /// `None` when the baseline was not compiled.
    pub fn sort(&self, options: &Options) -> Result<Option<Sorted>, BenchError> {
        eprintln!("std::stable_sort of the same words");
        stable_sort(options, self.documents, self.body)
    }
}

/// Hands the random words to `work`.
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

/// Hands text of the files below `folder` to `work`.
pub fn natural<T>(
    options: &Options,
    folder: &std::path::Path,
    work: impl FnOnce(&Bodies) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let natural = Natural::read(folder, options.documents_of(DOCUMENTS), options.seed)?;
    let body =
        |number: u64, out: &mut Vec<u8>| out.extend_from_slice(natural.body(number).as_bytes());
    work(&Bodies {
        corpus: &natural,
        documents: natural.documents(),
        body: &body,
        distinct: false,
    })
}
