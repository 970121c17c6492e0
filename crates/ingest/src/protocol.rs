//! The protocol between a worker and its owner, over two pipes.
//!
//! ```text
//! frame    length of the rest (u32) │ tag (u8) │ payload
//! payload  integers are little-endian; text and paths are length (u32) and bytes;
//!          optional values are 0, or 1 and the value; lists are count (u32) and values
//!
//! to the worker                         from the worker
//! S  limits, once, first                R  ready, the reply to S
//! F  path of a file to read, its share  D  a document of the file
//!                                       M  a failed member of the file
//!                                       K  a member without text: inner path, name of the format
//!                                       T  end of the file: three counts
//!                                       U  no extractor: name of the format
//!                                       E  the file failed: class, reason
//! ```
//!
//! A share is its index and the number of shares, see [`Share`]. The reply to F is any number of D,
//! M and K, followed by T, U or E. The owner does not trust a worker, because a malicious file may
//! control it: lengths are checked, and an invalid frame ends the worker.

use windrow_extract::{
    DocumentKind, DocumentMetadata, ExtractedDocument, ExtractionCounts, Limits, MailReference,
    Share,
};

use crate::failure::{Failure, FailureClass};

/// A message to the worker.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Start(WorkerLimits),
    File {
        /// The path's bytes.
        path: Vec<u8>,
        /// The codes of the languages of its documents.
        languages: Vec<String>,
        /// The share of its members to extract.
        share: Share,
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
    Document(Box<ExtractedDocument>),
    MemberFailure {
        failure: Failure,
        attached_to: Option<MailReference>,
    },
    MemberSkipped {
        inner: String,
        format: String,
        attached_to: Option<MailReference>,
    },
    /// A program starts. Contains its time limit in milliseconds.
    Program(u64),
    Done(ExtractionCounts),
    Unsupported(String),
    Failed(Failure),
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
                share,
            } => {
                let mut frame = Encoder::new(b'F');
                frame.bytes(path);
                frame.texts(languages);
                frame.u32(share.index);
                frame.u32(share.count);
                frame.finish()
            }
        }
    }

    /// Decodes a frame without its length. Fails if it is invalid.
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, InvalidFrame> {
        let (tag, payload) = frame.split_first().ok_or(InvalidFrame)?;
        let mut decoder = Decoder(payload);
        let request = match tag {
            b'S' => Request::Start(decoder.worker_limits()?),
            b'F' => Request::File {
                path: decoder.bytes()?.to_vec(),
                languages: decoder.texts()?,
                share: Share {
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
            Reply::Document(document) => encode_document(document),
            Reply::MemberFailure {
                failure,
                attached_to,
            } => {
                let mut frame = Encoder::new(b'M');
                frame.failure(failure);
                frame.mail_reference(attached_to.as_ref());
                frame.finish()
            }
            Reply::MemberSkipped {
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
            Reply::Program(time_ms) => {
                let mut frame = Encoder::new(b'P');
                frame.u64(*time_ms);
                frame.finish()
            }
            Reply::Done(counts) => {
                let mut frame = Encoder::new(b'T');
                frame.u64(counts.documents);
                frame.u64(counts.failures);
                frame.u64(counts.skipped);
                frame.finish()
            }
            Reply::Unsupported(what) => {
                let mut frame = Encoder::new(b'U');
                frame.bytes(what.as_bytes());
                frame.finish()
            }
            Reply::Failed(failure) => {
                let mut frame = Encoder::new(b'E');
                frame.failure(failure);
                frame.finish()
            }
        }
    }

    /// Decodes a frame without its length. Fails if it is invalid.
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, InvalidFrame> {
        let (tag, payload) = frame.split_first().ok_or(InvalidFrame)?;
        let mut decoder = Decoder(payload);
        let reply = match tag {
            b'R' => Reply::Ready,
            b'D' => Reply::Document(Box::new(decode_document(&mut decoder)?)),
            b'M' => Reply::MemberFailure {
                failure: decode_failure(&mut decoder)?,
                attached_to: decode_mail_reference(&mut decoder)?,
            },
            b'K' => Reply::MemberSkipped {
                inner: decoder.text()?,
                format: decoder.text()?,
                attached_to: decode_mail_reference(&mut decoder)?,
            },
            b'P' => Reply::Program(decoder.u64()?),
            b'T' => Reply::Done(ExtractionCounts {
                documents: decoder.u64()?,
                failures: decoder.u64()?,
                skipped: decoder.u64()?,
            }),
            b'U' => Reply::Unsupported(decoder.text()?),
            b'E' => Reply::Failed(decode_failure(&mut decoder)?),
            _ => return Err(InvalidFrame),
        };
        decoder.finish()?;
        Ok(reply)
    }
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
        attached_to: decode_mail_reference(decoder)?,
    };
    Ok(document)
}

fn decode_mail_reference(decoder: &mut Decoder<'_>) -> Result<Option<MailReference>, InvalidFrame> {
    decoder.optional(|decoder| {
        Ok(MailReference {
            inner_path: decoder.optional(Decoder::text)?,
            message_id: decoder.optional(Decoder::text)?,
        })
    })
}

fn decode_failure(decoder: &mut Decoder<'_>) -> Result<Failure, InvalidFrame> {
    Ok(Failure {
        inner: decoder.optional(Decoder::text)?,
        class: FailureClass::from_name(&decoder.text()?).ok_or(InvalidFrame)?,
        reason: decoder.text()?,
    })
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn new(tag: u8) -> Self {
        Encoder(vec![0, 0, 0, 0, tag])
    }

    /// Returns the frame. Its first four bytes, which are reserved by `new`, become its length.
    fn finish(mut self) -> Vec<u8> {
        let length = to_length(self.0.len() - 4).to_le_bytes();
        if let Some(prefix) = self.0.first_chunk_mut::<4>() {
            *prefix = length;
        }
        self.0
    }

    fn length(&mut self, length: usize) {
        self.u32(to_length(length));
    }

    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

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

    fn texts(&mut self, texts: &[String]) {
        self.length(texts.len());
        texts.iter().for_each(|text| self.bytes(text.as_bytes()));
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

    fn optional<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            encode(self, value);
        }
    }
}

/// The limits of an extraction keep texts and lists far below 4 GB. The receiver refuses a frame
/// with a greater length.
fn to_length(length: usize) -> u32 {
    let encoded = u32::try_from(length);
    debug_assert!(encoded.is_ok(), "a frame has a part of {length} bytes");
    encoded.unwrap_or(u32::MAX)
}

/// The error of a frame that was not encoded by this module.
#[derive(Debug, PartialEq)]
pub(crate) struct InvalidFrame;

struct Decoder<'f>(&'f [u8]);

impl<'f> Decoder<'f> {
    /// Fails if bytes are left.
    fn finish(self) -> Result<(), InvalidFrame> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(InvalidFrame)
        }
    }

    fn take(&mut self, length: usize) -> Result<&'f [u8], InvalidFrame> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(InvalidFrame)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], InvalidFrame> {
        let (array, rest) = self.0.split_first_chunk().ok_or(InvalidFrame)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u8(&mut self) -> Result<u8, InvalidFrame> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, InvalidFrame> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, InvalidFrame> {
        self.array().map(u64::from_le_bytes)
    }

    fn usize(&mut self) -> Result<usize, InvalidFrame> {
        usize::try_from(self.u64()?).map_err(|_| InvalidFrame)
    }

    fn bytes(&mut self) -> Result<&'f [u8], InvalidFrame> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Result<String, InvalidFrame> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| InvalidFrame)
    }

    fn texts(&mut self) -> Result<Vec<String>, InvalidFrame> {
        let count = self.u32()?;
        (0..count).map(|_| self.text()).collect()
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
                share: Share::WHOLE,
            },
        })
    }

    fn optional<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, InvalidFrame>,
    ) -> Result<Option<T>, InvalidFrame> {
        match self.u8()? {
            0 => Ok(None),
            1 => decode(self).map(Some),
            _ => Err(InvalidFrame),
        }
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
            Reply::Document(Box::new(full_document())),
            Reply::MemberFailure {
                failure: failure.clone(),
                attached_to: Some(MailReference {
                    inner_path: Some("#1".into()),
                    message_id: None,
                }),
            },
            Reply::MemberSkipped {
                inner: "!/a.png".into(),
                format: "PNG image".into(),
                attached_to: None,
            },
            Reply::Done(ExtractionCounts {
                documents: 1,
                failures: 2,
                skipped: 3,
            }),
            Reply::Program(5),
            Reply::Unsupported("PNG image".into()),
            Reply::Failed(failure),
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
                share: Share::WHOLE,
            },
        };
        let file = Request::File {
            path: b"/caf\xe9".to_vec(),
            languages: vec!["en".into()],
            share: Share { index: 1, count: 3 },
        };
        for request in [Request::Start(limits), file] {
            assert_eq!(Request::decode(&request.encode()[4..]), Ok(request));
        }
    }
}
