//! Writes rows that exceed the memory limit to temporary files.
//!
//! A file contains one run of sorted rows. Each row has this format, in little endian:
//!
//! ```text
//! key length u32 │ index key length u32 │ meta length u32 │ document length u32
//! number u64 │ record id u64 │ score? u8 │ score f64 │ key │ index key │ meta │ document
//! ```
//!
//! The file is in the folder for temporary files (`TMPDIR`). Its name is removed as soon as it is
//! open, so nothing is left of it when the process ends, even after a crash. It is encrypted with a
//! key that only this process has, because the data folder may be encrypted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use bytes::Bytes;
use windrow_document::{Document, DocumentBuf, Value, ValueRef};
use windrow_mql::{FusedScore, Meta, NearestPoint, Origin, SearchDetails, interrupt};
use windrow_storage::{TemporaryReader, TemporaryWriter};

use super::keyed_row::KeyedRow;
use crate::row::{Content, Row};
use crate::{Error, RecordId};

/// MongoDB's code FileStreamFailed.
const FILE_FAILED: i32 = 39;

fn failed(error: io::Error) -> Error {
    Error::new(
        FILE_FAILED,
        format!("a temporary file for spilled rows failed: {error}"),
    )
}

/// Counts the work of writing or reading a row, because a run can have gigabytes.
fn count_row(keyed: &KeyedRow) -> Result<(), Error> {
    // Reading or writing a file takes about four times as long as copying in memory.
    let bytes = 4 * (keyed.key.len() + keyed.row.content.as_bytes().len());
    Ok(interrupt::count_bytes(bytes + ROW_OVERHEAD)?)
}

/// The fixed cost of a row, in bytes.
const ROW_OVERHEAD: usize = 512;

/// A run that is being written.
pub(super) struct RunWriter(BufWriter<TemporaryWriter<File>>);

/// A run that is read from its start.
pub(super) struct Run(BufReader<TemporaryReader<File>>);

impl RunWriter {
    pub fn begin() -> Result<RunWriter, Error> {
        let name = format!(
            "windrow-{}-{:016x}",
            std::process::id(),
            getrandom::u64().unwrap_or_default()
        );
        let path = std::env::temp_dir().join(name);
        let mut options = OpenOptions::new();
        // Another user could open the file before it is removed.
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        fs::remove_file(&path).map_err(failed)?;
        let encrypted = TemporaryWriter::new(file).map_err(failed)?;
        Ok(RunWriter(BufWriter::with_capacity(1 << 16, encrypted)))
    }

    pub fn push(&mut self, keyed: &KeyedRow) -> Result<(), Error> {
        count_row(keyed)?;
        self.write(keyed).map_err(failed)
    }

    fn write(&mut self, keyed: &KeyedRow) -> io::Result<()> {
        let document = keyed.row.content.as_bytes();
        let index_key: &[u8] = keyed.row.key.as_ref().map_or(&[], |key| key.as_bytes());
        let meta = meta_document(&keyed.row.meta);
        let meta = meta.as_ref().map_or(&[][..], DocumentBuf::as_bytes);
        let parts = [&*keyed.key, index_key, meta, document];
        for part in parts {
            let length = u32::try_from(part.len()).map_err(io::Error::other)?;
            self.0.write_all(&length.to_le_bytes())?;
        }
        self.0.write_all(&keyed.number.to_le_bytes())?;
        self.0.write_all(&keyed.row.id.0.to_le_bytes())?;
        let score = keyed.row.meta.text_score;
        self.0.write_all(&[u8::from(score.is_some())])?;
        self.0.write_all(&score.unwrap_or_default().to_le_bytes())?;
        for part in parts {
            self.0.write_all(part)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Run, Error> {
        let written = self.0.into_inner();
        let written = written.map_err(|error| failed(error.into_error()))?;
        let reader = written.finish().map_err(failed)?;
        Ok(Run(BufReader::with_capacity(1 << 16, reader)))
    }
}

/// Encodes the metadata of a row as a document: the nearest point, the fused score, the origin and
/// the details of a search. `None` if there are none.
fn meta_document(meta: &Meta) -> Option<DocumentBuf> {
    let is_empty = meta.nearest.is_none() && meta.fused.is_none() && meta.origin.is_none();
    let has_search = meta.search_score.is_some() || meta.sequence_token.is_some();
    if is_empty && !has_search && meta.search.is_none() {
        return None;
    }
    let mut document = DocumentBuf::new();
    if let Some(search) = meta.search.as_deref() {
        if let Some(highlights) = &search.highlights {
            document.push("highlights", highlights.clone());
        }
        if let Some(details) = &search.score_details {
            document.push("scoreDetails", details.clone());
        }
    }
    if let Some(token) = meta.sequence_token.as_deref() {
        let bytes = token.to_vec();
        document.push("token", Value::Binary { subtype: 0, bytes });
    }
    if let Some(score) = meta.search_score {
        document.push("search", score);
    }
    if let Some(origin) = meta.origin.as_deref() {
        let mut fields = DocumentBuf::new();
        if let Some(key) = &origin.sort_key {
            fields.push("sortKey", key.clone());
        }
        if let Some(key) = &origin.index_key {
            fields.push("indexKey", key.clone());
        }
        if let Some(id) = origin.record_id {
            fields.push("recordId", id);
        }
        document.push("origin", fields);
    }
    if let Some(nearest) = meta.nearest.as_deref() {
        document.push("distance", nearest.distance);
        document.push("point", nearest.point.clone());
    }
    if let Some(fused) = meta.fused.as_deref() {
        document.push("score", fused.score);
        if let Some(details) = &fused.details {
            document.push("details", details.clone());
        }
    }
    Some(document)
}

/// Returns `None` if there is no fused score.
fn fused_of(document: Document<'_>) -> Option<FusedScore> {
    let details = document.get("details").and_then(ValueRef::as_document);
    Some(FusedScore {
        score: document.get("score")?.as_f64()?,
        details: details.map(|details| details.to_buf()),
    })
}

fn token_of(meta: Document<'_>) -> Option<Box<[u8]>> {
    match meta.get("token")? {
        ValueRef::Binary { bytes, .. } => Some(bytes.into()),
        _ => None,
    }
}

/// Returns `None` if there are only the scores of a search.
fn search_of(document: Document<'_>) -> Option<SearchDetails> {
    let highlights = document.get("highlights").and_then(ValueRef::as_array);
    let details = document.get("scoreDetails").and_then(ValueRef::as_document);
    (highlights.is_some() || details.is_some()).then(|| SearchDetails {
        highlights: highlights.map(|highlights| highlights.to_buf()),
        score_details: details.map(|details| details.to_buf()),
    })
}

/// Returns `None` if there is no origin.
fn origin_of(document: Document<'_>) -> Option<Origin> {
    let fields = document.get("origin")?.as_document()?;
    let index_key = fields.get("indexKey").and_then(ValueRef::as_document);
    Some(Origin {
        sort_key: fields.get("sortKey").map(ValueRef::to_value),
        index_key: index_key.map(|key| key.to_buf()),
        record_id: fields.get("recordId").and_then(ValueRef::as_whole),
    })
}

/// Returns `None` if there is no nearest point.
fn nearest_of(document: Document<'_>) -> Option<NearestPoint> {
    Some(NearestPoint {
        distance: document.get("distance")?.as_f64()?,
        point: document.get("point")?.to_value(),
    })
}

impl Run {
    /// Returns the next row, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<KeyedRow>, Error> {
        if self.0.fill_buf().map_err(failed)?.is_empty() {
            Ok(None)
        } else {
            let keyed = self.read().map_err(failed)?;
            count_row(&keyed)?;
            Ok(Some(keyed))
        }
    }

    fn read(&mut self) -> io::Result<KeyedRow> {
        let lengths = [
            self.read_u32()?,
            self.read_u32()?,
            self.read_u32()?,
            self.read_u32()?,
        ];
        let (number, id) = (self.read_u64()?, self.read_u64()?);
        let mut has_score = [0];
        self.0.read_exact(&mut has_score)?;
        let score = f64::from_bits(self.read_u64()?);
        let [key, index_key, meta, document] = lengths.map(|length| self.read_bytes(length));
        let (key, index_key, meta) = (key?, index_key?, meta?);
        let meta = if meta.is_empty() {
            Document::EMPTY
        } else {
            Document::from_bytes(&meta).map_err(io::Error::other)?
        };
        let key_document = || Box::new(DocumentBuf::from_validated(index_key.clone()));
        let row = Row {
            key: (!index_key.is_empty()).then(key_document),
            meta: Meta {
                text_score: (has_score == [1]).then_some(score),
                search_score: meta.get("search").and_then(ValueRef::as_f64),
                sequence_token: token_of(meta),
                search: search_of(meta).map(Box::new),
                nearest: nearest_of(meta).map(Box::new),
                fused: fused_of(meta).map(Box::new),
                origin: origin_of(meta).map(Box::new),
            },
            ..Row::from_record(RecordId(id), Content::Shared(Bytes::from(document?)))
        };
        Ok(KeyedRow {
            key: key.into(),
            number,
            row,
        })
    }

    fn read_u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.0.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn read_u64(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read_bytes(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
