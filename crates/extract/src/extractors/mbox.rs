//! Splits an mbox into messages, without reading it into memory. As in RFC 4155, a message starts
//! with a line `From ADDRESS DATE` at the beginning of the file or after an empty line. Other lines
//! that begin with `From ` are text. In a line of one or more `>` followed by `From `, one `>` is
//! removed (format "mboxrd", see
//! <https://www.loc.gov/preservation/digital/formats/fdd/fdd000385.shtml>).
//!
//! A `Content-Length` (format "mboxcl2") is used if a message starts or the file ends after it,
//! because such a mailbox does not escape its text. Programs that change a mailbox often leave a
//! wrong length.

use std::io::{BufRead, Read};

use super::mail;
use crate::bounded_reader::convert_read_error;
use crate::error::{ExtractError, Limit};
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};
use crate::limits::ResourceUsage;

/// Returns `true` if the file begins with a line `From …` and a header line. Prose can also begin
/// with "From ", but without a header.
pub(crate) fn is_mbox(input: &Input<'_>) -> bool {
    let bytes = take_prefix(input.bytes, 4096).trim_ascii_start();
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = lines.next().is_some_and(|line| line.starts_with(b"From "));
    let mut lines = lines.filter(|line| !line.starts_with(b">From "));
    first && lines.next().and_then(mail::parse_field_name).is_some()
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
        if location.depth == 0 {
            // The size of a mailbox is not limited, because each message has the limits of a file.
            extraction.usage = ResourceUsage::default();
        }
        let location = location.for_message(number);
        match messages.next_message()? {
            None => break,
            Some(_) if !extraction.takes_member(&location) => {}
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
    /// The message with its line `From …`, which contains the delivery date.
    message: Vec<u8>,
    /// The last line that was read. Between messages, it is the first line of the next one.
    line: Vec<u8>,
    has_message: bool,
    /// Bytes that were read to check a `Content-Length`, and the number of those that were
    /// consumed.
    lookahead: Vec<u8>,
    lookahead_used: usize,
}

impl<'r> MboxReader<'r> {
    fn new(reader: &'r mut dyn BufRead, bytes_max: u64) -> Self {
        MboxReader {
            reader,
            bytes_max,
            message: Vec::new(),
            line: Vec::new(),
            has_message: false,
            lookahead: Vec::new(),
            lookahead_used: 0,
        }
    }

    /// Reads the next message, up to the first line of another one. Reading is fast, so the
    /// deadline is checked only between messages.
    fn next_message(&mut self) -> Result<Option<MboxMessage<'_>>, ExtractError> {
        self.message.clear();
        let mut too_long = false;
        let mut after_empty_line = true;
        let mut length = None;
        let mut in_header = true;
        if self.has_message {
            self.message.extend_from_slice(&self.line);
            after_empty_line = false;
        }
        while self.read_line()? {
            if after_empty_line && is_from_line(&self.line) && self.has_message {
                return Ok(Some(self.current_message(too_long)));
            }
            let is_empty = self.line.trim_ascii().is_empty();
            after_empty_line = is_empty;
            if is_empty && !self.has_message {
                continue;
            }
            self.has_message = true;
            if in_header {
                length = parse_content_length(&self.line).or(length);
            }
            if in_header && is_empty {
                in_header = false;
                length = length.filter(|length| *length <= self.bytes_max);
                if let Some(length) = length {
                    self.read_measured_body(length)?;
                    continue;
                }
            }
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

    /// Reads a body of this length. Succeeds only if a message or the end of the file follows it.
    fn read_measured_body(&mut self, length: u64) -> Result<(), ExtractError> {
        self.message.extend_from_slice(&self.line);
        self.lookahead.drain(..self.lookahead_used);
        self.lookahead_used = 0;
        let needed = length.saturating_add(FROM_LINE_BYTES_MAX as u64);
        let missing = needed.saturating_sub(self.lookahead.len() as u64);
        let mut limited = (&mut *self.reader).take(missing);
        let read = limited.read_to_end(&mut self.lookahead);
        read.map_err(|error| convert_read_error("mbox", error))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((body, after)) = self.lookahead.split_at_checked(length) else {
            return Ok(());
        };
        let line_break = after.trim_ascii_start();
        let next = line_break.split(|byte| *byte == b'\n').next();
        let is_right = line_break.is_empty() && after.len() < FROM_LINE_BYTES_MAX
            || next.is_some_and(is_from_line);
        if is_right && body.len() + self.message.len() <= self.bytes_max as usize {
            for line in body.split_inclusive(|byte| *byte == b'\n') {
                self.message.extend_from_slice(unescape_from_line(line));
            }
            self.lookahead_used = length;
        }
        Ok(())
    }

    /// Reads a line, limited to the size of a message. Returns `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, ExtractError> {
        self.line.clear();
        let rest = self
            .lookahead
            .get(self.lookahead_used..)
            .unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map(|at| at + 1);
        let taken = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.line.extend_from_slice(taken);
        self.lookahead_used += taken.len();
        if end.is_some() {
            return Ok(true);
        }
        let mut limited = (&mut *self.reader).take(self.bytes_max.saturating_add(1));
        let read = limited.read_until(b'\n', &mut self.line);
        read.map_err(|error| convert_read_error("mbox", error))?;
        Ok(!self.line.is_empty())
    }
}

fn parse_content_length(line: &[u8]) -> Option<u64> {
    let name = mail::parse_field_name(line)?;
    let value = line.get(name.len() + 1..)?.trim_ascii();
    let is_length = name.eq_ignore_ascii_case(b"content-length");
    is_length.then(|| std::str::from_utf8(value).ok()?.parse().ok())?
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

/// Returns `true` for `From ADDRESS DATE`, where a date is `Mon Jan  1 00:00:00 2024` with or
/// without weekday, seconds and zone. An address can contain spaces, and more words can follow the
/// date (`remote from host`).
fn is_from_line(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else {
        return false;
    };
    let mut words: Vec<&[u8]> = Vec::new();
    for word in take_prefix(rest, FROM_LINE_BYTES_MAX).split(u8::is_ascii_whitespace) {
        if !word.is_empty() {
            words.push(word);
        }
    }
    let clocks = words.iter().enumerate().filter(|(_, word)| is_clock(word));
    let mut with_date = clocks.filter(|(at, _)| {
        let before = words.get(at.saturating_sub(3)..*at).unwrap_or_default();
        let after = words.get(at + 1..).unwrap_or_default();
        let has_month = before.iter().any(|word| is_month(word));
        let has_day = before.iter().any(|word| is_number(word, 1..=2));
        let mut years = before.iter().chain(after.iter().take(3));
        has_month && has_day && years.any(|word| is_number(word, 4..=4))
    });
    with_date.next().is_some()
}

/// Longer lines are text.
const FROM_LINE_BYTES_MAX: usize = 1000;

fn is_clock(word: &[u8]) -> bool {
    let mut parts = word.split(|byte| *byte == b':');
    let two_digits = |part: Option<&[u8]>| part.is_some_and(|part| is_number(part, 1..=2));
    two_digits(parts.next())
        && two_digits(parts.next())
        && parts.next().is_none_or(|part| is_number(part, 1..=2))
        && parts.next().is_none()
}

fn is_month(word: &[u8]) -> bool {
    const MONTHS: [&[u8]; 12] = [
        b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov",
        b"dec",
    ];
    MONTHS
        .iter()
        .any(|month| month.eq_ignore_ascii_case(take_prefix(word, 3)))
}

fn is_number(word: &[u8], digits: std::ops::RangeInclusive<usize>) -> bool {
    let word = word.strip_suffix(b",").unwrap_or(word);
    digits.contains(&word.len()) && word.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use crate::error::ExtractError;
    use crate::extract::{ReadMode, detect_read_mode, extract_stream};
    use crate::fixtures::extract_documents;
    use crate::limits::Limits;
    use crate::output::{ExtractionCounts, Output};
    use crate::programs::FileContext;

    /// Extracts from an mbox through a stream.
    fn extract_mbox<'a>(
        mbox: &str,
        limits: &'a Limits,
        emit: &'a mut dyn FnMut(Output),
    ) -> Result<ExtractionCounts, ExtractError> {
        let ReadMode::Stream(format) = detect_read_mode("", MBOX.as_bytes(), None) else {
            panic!("an mbox is read as a stream")
        };
        let context = FileContext::new(limits);
        extract_stream(format, "", &mut mbox.as_bytes(), context, emit)
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

    /// Checks the texts of the messages.
    fn check(mbox: &str, expected: &[&str]) {
        let texts = |mbox: &str| -> Vec<String> {
            let documents = extract_documents("mail", mbox.as_bytes());
            documents
                .into_iter()
                .map(|document| document.text)
                .collect()
        };
        assert_eq!(texts(mbox), expected, "{mbox}");
        let windows = mbox.replace('\n', "\r\n");
        // Bodies of several lines keep their line breaks, and a length counts them.
        if !mbox.contains("Content-Length") {
            assert_eq!(texts(&windows), expected, "{windows}");
        }
    }

    #[test]
    fn only_lines_with_an_address_and_a_date_start_a_message() {
        for line in [
            "ada@example.org Mon Jan  1 00:00:00 2024",
            "- Mon Jan 01 00:00:00 2024",
            "ada Mon Jan  1 00:00 2024",
            "ada@example.org Mon Jan  1 00:00:00 CET 2024",
            "ada@example.org Mon Jan  1 00:00:00 2024 +0100",
            "ada@example.org Mon, 1 Jan 2024 00:00:00 +0100",
            "Ada Lovelace Mon Jan  1 00:00:00 2024",
            "host!ada Mon Jan  1 00:00:00 2024 remote from host",
            "0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001",
        ] {
            let mbox = format!(
                "From a Mon Jan 1 00:00:00 2024\nTo: a\n\none\n\nFrom {line}\nTo: b\n\ntwo\n"
            );
            check(&mbox, &["one", "two"]);
        }
        for text in [
            "From here on, nothing is lost.",
            "From 10:30 on 1 May we bake.",
            "From Ada with love",
            "From: Ada Mon Jan  1 00:00:00 2024",
        ] {
            let mbox = format!("From a Mon Jan 1 00:00:00 2024\nTo: a\n\none\n\n{text}\ntwo");
            let expected = format!("one\n\n{text}\ntwo");
            let texts: Vec<_> = extract_documents("mail", mbox.as_bytes());
            assert_eq!(texts[0].text, expected);
            assert_eq!(texts.len(), 1, "{text}");
        }
    }

    #[test]
    fn a_length_counts_if_a_message_follows_it() {
        let from = "From a@x Mon Jan  1 00:00:00 2024\n";
        let body = format!("one\n\n{from}in the text\n");
        let message = |length: usize| {
            let right = format!("{from}Content-Length: {length}\n\n{body}\n");
            format!("{right}{from}To: b\n\ntwo\n")
        };
        check(&message(body.len()), &[body.trim_end(), "two"]);
        // Wrong lengths: the text is split, but nothing is lost.
        for length in [0, 3, 10, 1000, usize::MAX] {
            check(&message(length), &["one", "in the text", "two"]);
        }
        check(
            &format!("{from}Content-Length: {}\n\n{body}", body.len()),
            &[body.trim_end()],
        );
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
            Output::Skipped(skipped) => panic!("{skipped:?}"),
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
