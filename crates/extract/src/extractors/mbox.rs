//! Splits an mbox into messages, without reading it into memory. A message starts after a line
//! `From …` at the beginning of the file or after an empty line. A line of one or more `>` followed
//! by `From ` is unescaped by removing a `>` (format "mboxrd", see
//! <https://www.loc.gov/preservation/digital/formats/fdd/fdd000385.shtml>).

use std::io::{BufRead, Read};

use super::mail;
use crate::error::{ExtractError, Limit};
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};

/// Returns `true` if the file begins with a line `From …` and a header line. Prose can begin with
/// "From ", but no header follows there.
pub(crate) fn is_mbox(input: &Input<'_>) -> bool {
    let mut lines = take_prefix(input.bytes, 4096).split(|&byte| byte == b'\n');
    let first = lines.next().is_some_and(|line| line.starts_with(b"From "));
    first && lines.next().and_then(mail::parse_header_name).is_some()
}

/// Extracts from all messages.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    let mut messages = MboxReader::new(reader, extraction.limits.input_bytes_max);
    for number in 1.. {
        extraction.limits.check_deadline()?;
        let location = location.for_message(number);
        match messages.next_message()? {
            None => break,
            Some(MboxMessage::Complete(bytes)) => {
                let result = mail::extract(extraction, &location, bytes);
                extraction.record_result(&location, result)?;
            }
            Some(MboxMessage::TooLong) => {
                let limit = extraction.limits.input_bytes_max;
                let error = ExtractError::limit(Limit::MessageSize, limit);
                extraction.record_result(&location, Err(error))?;
            }
        }
    }
    Ok(())
}

enum MboxMessage<'m> {
    Complete(&'m [u8]),
    TooLong,
}

struct MboxReader<'r> {
    reader: &'r mut dyn BufRead,
    bytes_max: u64,
    message: Vec<u8>,
    line: Vec<u8>,
    /// A message has begun. Its `From ` line, if any, is already read.
    has_message: bool,
}

impl<'r> MboxReader<'r> {
    fn new(reader: &'r mut dyn BufRead, bytes_max: u64) -> Self {
        MboxReader {
            reader,
            bytes_max,
            message: Vec::new(),
            line: Vec::new(),
            has_message: false,
        }
    }

    /// Reads the next message, up to the line that starts another. Reading is fast, so the deadline
    /// is only checked between messages.
    fn next_message(&mut self) -> Result<Option<MboxMessage<'_>>, ExtractError> {
        self.message.clear();
        let (mut too_long, mut after_empty_line) = (false, false);
        while self.read_line()? {
            if self.line.starts_with(b"From ") && (after_empty_line || !self.has_message) {
                if self.has_message {
                    return Ok(Some(self.current_message(too_long)));
                }
                self.has_message = true;
                continue;
            }
            self.has_message = true;
            after_empty_line = self.line.trim_ascii().is_empty();
            if (self.message.len() + self.line.len()) as u64 > self.bytes_max {
                too_long = true;
            } else if !too_long {
                self.message
                    .extend_from_slice(unescape_from_line(&self.line));
            }
        }
        let any = std::mem::take(&mut self.has_message);
        Ok(any.then(|| self.current_message(too_long)))
    }

    fn current_message(&self, too_long: bool) -> MboxMessage<'_> {
        if too_long {
            MboxMessage::TooLong
        } else {
            MboxMessage::Complete(&self.message)
        }
    }

    /// Reads a line, limited to the size of a message. Returns `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, ExtractError> {
        self.line.clear();
        let mut limited = (&mut *self.reader).take(self.bytes_max.saturating_add(1));
        let read = limited.read_until(b'\n', &mut self.line);
        read.map(|bytes| bytes > 0)
            .map_err(|error| ExtractError::malformed("mbox", error))
    }
}

fn unescape_from_line(line: &[u8]) -> &[u8] {
    let Some(rest) = line.strip_prefix(b">") else {
        return line;
    };
    let quotes = rest.iter().take_while(|byte| **byte == b'>').count();
    let from = rest
        .get(quotes..)
        .is_some_and(|rest| rest.starts_with(b"From "));
    if from { rest } else { line }
}

#[cfg(test)]
mod tests {
    use crate::error::ExtractError;
    use crate::extract::{ReadMode, detect_read_mode, extract_stream};
    use crate::fixtures::extract_documents;
    use crate::limits::Limits;
    use crate::output::{ExtractionCounts, Output};

    /// Extracts from an mbox through a stream.
    fn extract_mbox(
        mbox: &str,
        limits: &Limits,
        emit: &mut dyn FnMut(Output),
    ) -> Result<ExtractionCounts, ExtractError> {
        let ReadMode::Stream(format) = detect_read_mode("", MBOX.as_bytes()) else {
            panic!("an mbox is read as a stream")
        };
        extract_stream(format, &mut mbox.as_bytes(), limits, emit)
    }

    const MBOX: &str = "From a@x Mon Jan  1 00:00:00 2024\nSubject: One\n\nbody\n>From here\n\
        From the middle\n\nFrom b@x Mon Jan  1 00:00:00 2024\nSubject: Two\n\nsecond\n";

    #[test]
    fn messages_are_documents() {
        let found: Vec<_> = extract_documents("mail", MBOX.as_bytes())
            .into_iter()
            .map(|d| (d.inner_path.unwrap(), d.title.unwrap(), d.text))
            .collect();
        let expected = [
            (
                "#1".into(),
                "One".into(),
                "body\nFrom here\nFrom the middle".into(),
            ),
            ("#2".into(), "Two".into(), "second".into()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_oversized_message_does_not_affect_the_others() {
        let long = "x".repeat(5000);
        let mbox = format!("From a\nSubject: long\n\n{long}\n{long}\n\n{MBOX}");
        let limits = Limits {
            input_bytes_max: 1000,
            ..Limits::default()
        };
        let mut numbers = Vec::new();
        let counts = extract_mbox(&mbox, &limits, &mut |output| match output {
            Output::Document(document) => numbers.push(document.inner_path.unwrap()),
            Output::Failure(failure) => numbers.push(format!("bad {}", failure.inner_path)),
        });
        assert_eq!(
            counts,
            Ok(ExtractionCounts {
                documents: 2,
                failures: 1,
                skipped: 0
            })
        );
        assert_eq!(numbers, ["bad #1", "#2", "#3"]);
    }

    #[test]
    fn an_empty_mbox_has_no_messages() {
        let counts = extract_mbox("", &Limits::default(), &mut |_| ());
        assert_eq!(counts, Ok(ExtractionCounts::default()));
    }
}
