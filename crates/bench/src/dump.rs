//! Writes a corpus to standard output, for inspection or as the input of a baseline.

use std::io::{BufWriter, Write};

use crate::corpus::people::People;
use crate::corpus::readings::Readings;
use crate::corpus::weather::Weather;
use crate::corpus::words::Words;
use crate::error::{At, BenchError};
use crate::load;
use crate::options::Options;

const DOCUMENTS: u64 = 1_000;

/// Writes the corpora of `--cases`: `words` as lines of text, the others as BSON.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let documents = options.documents_of(DOCUMENTS);
    for name in &options.cases_or(&["small", "large"]) {
        let written = match name.as_str() {
            "words" => lines(&Words { seed: options.seed }, documents, &mut out),
            "weather" => load::feed(&Weather::new(options.seed), documents, &mut out),
            "small" => load::feed(&Readings::growing(options.seed), documents, &mut out),
            "large" => load::feed(&People::new(options.seed), documents, &mut out),
            _ => return Err(BenchError::Usage(format!("there is no corpus {name:?}"))),
        };
        written.at("standard output")?;
    }
    out.flush().at("standard output")
}

fn lines(words: &Words, documents: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut line = Vec::new();
    for number in 0..documents {
        line.clear();
        words.body(number, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}
