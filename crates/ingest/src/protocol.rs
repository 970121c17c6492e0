//! The protocol between a worker and its owner, over two pipes.
//!
//! ```text
//! frame    length of the rest (u32) │ tag (u8) │ payload
//! payload  integers are little-endian; text and paths are length (u32) and bytes;
//!          optional values are 0, or 1 and the value; lists are count (u32) and values
//!
//! to the worker                         from the worker
//! S  limits, once, first                R  ready, the reply to S
//! F  path of a file to read, its part  D  a document of the file
//!                                       M  a failed member of the file
//!                                       K  a member without text: inner path, name of the format
//!                                       P  a program starts: its time limit in milliseconds
//!                                       T  end of the file: three counts
//!                                       U  no extractor: name of the format
//!                                       E  the file failed: class, reason
//! ```
//!
//! A part is its index and the number of parts, see [`FilePart`]. The reply to F is any number of
//! D, M, K and P, followed by T, U or E. The owner does not trust a worker, because a malicious
//! file may control it: lengths are checked, and an invalid frame ends the worker.

mod frame;

use windrow_extract::{
    DocumentKind, DocumentMetadata, ExtractedDocument, ExtractionCounts, FilePart, Limits,
    MailReference,
};

use crate::failure::{Failure, FailureClass};
use crate::file_event::{FileEvent, FileOutcome};
use frame::{Decoder, Encoder};

pub(crate) use frame::InvalidFrame;

/// A message to the worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Start(WorkerLimits),
    File {
        /// The path's bytes.
        path: Vec<u8>,
        /// The codes of the languages of its documents.
        languages: Vec<String>,
        /// The part of its members to extract.
        file_part: FilePart,
    },
}

/// The limits of a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkerLimits {
    pub(crate) memory_bytes_max: u64,
    /// The time limit for a file.
    pub(crate) file_deadline_ms: u64,
    /// The limits of each file. Their `deadline` is not sent.
    pub(crate) file_limits: Limits,
    /// [`windrow_converters::ProgramSettings`] as text.
    pub(crate) programs: String,
}

/// A message from the worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Ready,
    /// A program starts. Contains its time limit in milliseconds.
    Program(u64),
    /// An event of the file that the owner has requested.
    Event(FileEvent),
}

impl Request {
    /// Returns the encoded frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Request::Start(limits) => {
                let mut frame = Encoder::new(b'S');
                frame.worker_limits(limits);
                frame.finish()
            }
            Request::File {
                path,
                languages,
                file_part,
            } => {
                let mut frame = Encoder::new(b'F');
                frame.bytes(path);
                frame.texts(languages);
                frame.u32(file_part.index);
                frame.u32(file_part.count);
                frame.finish()
            }
        }
    }

    /// Decodes a frame without its length. Fails if it is invalid.
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, InvalidFrame> {
        let (tag, payload) = frame.split_first().ok_or(InvalidFrame)?;
        let mut decoder = Decoder::new(payload);
        let request = match tag {
            b'S' => Request::Start(decoder.worker_limits()?),
            b'F' => Request::File {
                path: decoder.bytes()?.to_vec(),
                languages: decoder.texts()?,
                file_part: FilePart {
                    index: decoder.u32()?,
                    count: decoder.u32()?,
                },
            },
            _ => return Err(InvalidFrame),
        };
        decoder.finish()?;
        Ok(request)
    }
}

impl Reply {
    /// Returns the encoded frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Ready => Encoder::new(b'R').finish(),
            Reply::Program(time_ms) => {
                let mut frame = Encoder::new(b'P');
                frame.u64(*time_ms);
                frame.finish()
            }
            Reply::Event(event) => encode_event(event),
        }
    }

    /// Decodes a frame without its length. Fails if it is invalid.
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, InvalidFrame> {
        let (tag, payload) = frame.split_first().ok_or(InvalidFrame)?;
        let mut decoder = Decoder::new(payload);
        let reply = match tag {
            b'R' => Reply::Ready,
            b'P' => Reply::Program(decoder.u64()?),
            _ => Reply::Event(decode_event(*tag, &mut decoder)?),
        };
        decoder.finish()?;
        Ok(reply)
    }
}

fn encode_event(event: &FileEvent) -> Vec<u8> {
    match event {
        FileEvent::Document(document) => encode_document(document),
        FileEvent::MemberFailure {
            failure,
            attached_to,
        } => {
            let mut frame = Encoder::new(b'M');
            frame.failure(failure);
            frame.mail_reference(attached_to.as_ref());
            frame.finish()
        }
        FileEvent::MemberSkipped {
            inner,
            format,
            attached_to,
        } => {
            let mut frame = Encoder::new(b'K');
            frame.bytes(inner.as_bytes());
            frame.bytes(format.as_bytes());
            frame.mail_reference(attached_to.as_ref());
            frame.finish()
        }
        FileEvent::End(outcome) => encode_outcome(outcome),
    }
}

fn encode_outcome(outcome: &FileOutcome) -> Vec<u8> {
    match outcome {
        FileOutcome::Done(counts) => {
            let mut frame = Encoder::new(b'T');
            frame.u64(counts.documents);
            frame.u64(counts.failures);
            frame.u64(counts.skipped);
            frame.finish()
        }
        FileOutcome::Skipped(format) => {
            let mut frame = Encoder::new(b'U');
            frame.bytes(format.as_bytes());
            frame.finish()
        }
        FileOutcome::Failed(failure) => {
            let mut frame = Encoder::new(b'E');
            frame.failure(failure);
            frame.finish()
        }
    }
}

fn decode_event(tag: u8, decoder: &mut Decoder<'_>) -> Result<FileEvent, InvalidFrame> {
    Ok(match tag {
        b'D' => FileEvent::Document(Box::new(decode_document(decoder)?)),
        b'M' => FileEvent::MemberFailure {
            failure: decoder.failure()?,
            attached_to: decoder.mail_reference()?,
        },
        b'K' => FileEvent::MemberSkipped {
            inner: decoder.text()?,
            format: decoder.text()?,
            attached_to: decoder.mail_reference()?,
        },
        b'T' => FileEvent::End(FileOutcome::Done(ExtractionCounts {
            documents: decoder.u64()?,
            failures: decoder.u64()?,
            skipped: decoder.u64()?,
        })),
        b'U' => FileEvent::End(FileOutcome::Skipped(decoder.text()?)),
        b'E' => FileEvent::End(FileOutcome::Failed(decoder.failure()?)),
        _ => return Err(InvalidFrame),
    })
}

fn encode_document(document: &ExtractedDocument) -> Vec<u8> {
    let mut frame = Encoder::new(b'D');
    let metadata = &document.metadata;
    frame.bytes(document.kind.as_str().as_bytes());
    frame.u8(document.truncated.into());
    frame.bytes(document.text.as_bytes());
    let texts = [
        &document.inner_path,
        &document.title,
        &document.language,
        &metadata.subject,
        &metadata.author,
        &metadata.message_id,
        &metadata.syntax,
        &metadata.description,
        &metadata.list_id,
        &metadata.album,
        &metadata.camera,
        &metadata.converter,
    ];
    for text in texts {
        frame.optional(text.as_ref(), |frame, text| frame.bytes(text.as_bytes()));
    }
    frame.optional(metadata.date_ms, |frame, date| {
        frame.u64(date.cast_unsigned())
    });
    frame.optional(metadata.duration_ms, Encoder::u64);
    for number in [metadata.pages, metadata.width, metadata.height] {
        frame.optional(number, Encoder::u32);
    }
    let lists = [
        &metadata.from,
        &metadata.to,
        &metadata.cc,
        &metadata.keywords,
        &metadata.columns,
        &metadata.bcc,
        &metadata.reply_to,
        &metadata.in_reply_to,
        &metadata.references,
    ];
    for list in lists {
        frame.texts(list);
    }
    frame.mail_reference(metadata.attached_to.as_ref());
    frame.finish()
}

fn decode_document(decoder: &mut Decoder<'_>) -> Result<ExtractedDocument, InvalidFrame> {
    let kind = DocumentKind::from_name(&decoder.text()?).ok_or(InvalidFrame)?;
    let truncated = decoder.u8()? == 1;
    let mut document = ExtractedDocument::new(kind, decoder.text()?);
    document.truncated = truncated;
    document.inner_path = decoder.optional(Decoder::text)?;
    document.title = decoder.optional(Decoder::text)?;
    document.language = decoder.optional(Decoder::text)?;
    document.metadata = DocumentMetadata {
        subject: decoder.optional(Decoder::text)?,
        author: decoder.optional(Decoder::text)?,
        message_id: decoder.optional(Decoder::text)?,
        syntax: decoder.optional(Decoder::text)?,
        description: decoder.optional(Decoder::text)?,
        list_id: decoder.optional(Decoder::text)?,
        album: decoder.optional(Decoder::text)?,
        camera: decoder.optional(Decoder::text)?,
        converter: decoder.optional(Decoder::text)?,
        date_ms: decoder.optional(Decoder::u64)?.map(u64::cast_signed),
        duration_ms: decoder.optional(Decoder::u64)?,
        pages: decoder.optional(Decoder::u32)?,
        width: decoder.optional(Decoder::u32)?,
        height: decoder.optional(Decoder::u32)?,
        from: decoder.texts()?,
        to: decoder.texts()?,
        cc: decoder.texts()?,
        keywords: decoder.texts()?,
        columns: decoder.texts()?,
        bcc: decoder.texts()?,
        reply_to: decoder.texts()?,
        in_reply_to: decoder.texts()?,
        references: decoder.texts()?,
        attached_to: decoder.mail_reference()?,
    };
    Ok(document)
}

impl Encoder {
    fn failure(&mut self, failure: &Failure) {
        self.optional(failure.inner.as_ref(), |frame, inner| {
            frame.bytes(inner.as_bytes())
        });
        self.bytes(failure.class.as_str().as_bytes());
        self.bytes(failure.reason.as_bytes());
    }

    fn mail_reference(&mut self, mail: Option<&MailReference>) {
        self.optional(mail, |frame, mail| {
            for text in [&mail.inner_path, &mail.message_id] {
                frame.optional(text.as_ref(), |frame, text| frame.bytes(text.as_bytes()));
            }
        });
    }

    fn worker_limits(&mut self, limits: &WorkerLimits) {
        self.u64(limits.memory_bytes_max);
        self.u64(limits.file_deadline_ms);
        self.bytes(limits.programs.as_bytes());
        let limits = &limits.file_limits;
        self.u64(limits.input_bytes_max);
        self.u64(limits.text_bytes_max as u64);
        self.u64(limits.part_bytes_max as u64);
        self.u64(limits.expanded_bytes_max);
        self.u64(limits.expansion_ratio_max);
        self.u32(limits.depth_max);
        self.u64(limits.members_max);
        self.u32(limits.pages_max);
    }
}

impl Decoder<'_> {
    fn failure(&mut self) -> Result<Failure, InvalidFrame> {
        Ok(Failure {
            inner: self.optional(Decoder::text)?,
            class: FailureClass::from_name(&self.text()?).ok_or(InvalidFrame)?,
            reason: self.text()?,
        })
    }

    fn mail_reference(&mut self) -> Result<Option<MailReference>, InvalidFrame> {
        self.optional(|decoder| {
            Ok(MailReference {
                inner_path: decoder.optional(Decoder::text)?,
                message_id: decoder.optional(Decoder::text)?,
            })
        })
    }

    fn worker_limits(&mut self) -> Result<WorkerLimits, InvalidFrame> {
        Ok(WorkerLimits {
            memory_bytes_max: self.u64()?,
            file_deadline_ms: self.u64()?,
            programs: self.text()?,
            file_limits: Limits {
                input_bytes_max: self.u64()?,
                text_bytes_max: self.usize()?,
                part_bytes_max: self.usize()?,
                expanded_bytes_max: self.u64()?,
                expansion_ratio_max: self.u64()?,
                depth_max: self.u32()?,
                members_max: self.u64()?,
                pages_max: self.u32()?,
                deadline: None,
                file_part: FilePart::WHOLE,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_document() -> ExtractedDocument {
        let mut document = ExtractedDocument::new(DocumentKind::Mail, "words".into());
        document.inner_path = Some("#1".into());
        document.title = Some("Größe".into());
        document.truncated = true;
        document.metadata = DocumentMetadata {
            from: vec!["a".into(), "b".into()],
            date_ms: Some(-5),
            pages: Some(3),
            album: Some("a".into()),
            camera: Some("c".into()),
            converter: Some("a/b".into()),
            duration_ms: Some(1 << 40),
            width: Some(4),
            height: Some(5),
            syntax: Some("c".into()),
            keywords: vec!["k".into()],
            description: Some("d".into()),
            columns: vec!["x".into(), "y".into()],
            references: vec!["r".into()],
            list_id: Some("l".into()),
            attached_to: Some(MailReference {
                inner_path: None,
                message_id: Some("m".into()),
            }),
            ..DocumentMetadata::default()
        };
        document
    }

    #[test]
    fn replies_are_decoded_and_truncated_ones_refused() {
        let failure = Failure {
            inner: Some("!/x".into()),
            class: FailureClass::Limit,
            reason: "big".into(),
        };
        let replies = [
            Reply::Ready,
            Reply::Program(5),
            Reply::Event(FileEvent::Document(Box::new(full_document()))),
            Reply::Event(FileEvent::MemberFailure {
                failure: failure.clone(),
                attached_to: Some(MailReference {
                    inner_path: Some("#1".into()),
                    message_id: None,
                }),
            }),
            Reply::Event(FileEvent::MemberSkipped {
                inner: "!/a.png".into(),
                format: "PNG image".into(),
                attached_to: None,
            }),
            Reply::Event(FileEvent::End(FileOutcome::Done(ExtractionCounts {
                documents: 1,
                failures: 2,
                skipped: 3,
            }))),
            Reply::Event(FileEvent::End(FileOutcome::Skipped("PNG image".into()))),
            Reply::Event(FileEvent::End(FileOutcome::Failed(failure))),
        ];
        for reply in replies {
            let frame = reply.encode();
            assert_eq!(
                frame.len() - 4,
                u32::from_le_bytes(*frame.first_chunk().unwrap()) as usize
            );
            assert_eq!(Reply::decode(&frame[4..]), Ok(reply));
            for end in 4..frame.len() {
                assert_eq!(Reply::decode(&frame[4..end]), Err(InvalidFrame));
            }
            assert_eq!(
                Reply::decode(&[&frame[4..], b"x"].concat()),
                Err(InvalidFrame)
            );
        }
        assert_eq!(Reply::decode(b"?"), Err(InvalidFrame));
    }

    #[test]
    fn requests_are_decoded() {
        let limits = WorkerLimits {
            memory_bytes_max: 1,
            file_deadline_ms: 2,
            programs: "{}".into(),
            file_limits: Limits {
                input_bytes_max: 3,
                text_bytes_max: 4,
                part_bytes_max: 10,
                expanded_bytes_max: 5,
                expansion_ratio_max: 6,
                depth_max: 7,
                members_max: 8,
                pages_max: 9,
                deadline: None,
                file_part: FilePart::WHOLE,
            },
        };
        let file = Request::File {
            path: b"/caf\xe9".to_vec(),
            languages: vec!["en".into()],
            file_part: FilePart { index: 1, count: 3 },
        };
        for request in [Request::Start(limits), file] {
            assert_eq!(Request::decode(&request.encode()[4..]), Ok(request));
        }
    }
}
