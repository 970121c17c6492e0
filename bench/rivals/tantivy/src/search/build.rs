//! The index and its sizes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TantivyDocument};

use crate::Failure;

pub struct Settings {
    pub folder: PathBuf,
    pub threads: usize,
    pub memory_bytes: usize,
}

pub struct BuiltIndex {
    pub index: Index,
    pub id: Field,
    pub body: Field,
    seconds: f64,
    folder: PathBuf,
}

/// Builds the index. The time ends with the commit.
pub fn build(settings: &Settings, bodies: &[String]) -> Result<BuiltIndex, Failure> {
    let mut schema = Schema::builder();
    let id = schema.add_u64_field("id", FAST);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("default")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let body = schema.add_text_field(
        "body",
        TextOptions::default().set_indexing_options(indexing),
    );
    let index = Index::create_in_dir(&settings.folder, schema.build())?;
    let start = Instant::now();
    let mut writer: IndexWriter =
        index.writer_with_num_threads(settings.threads, settings.memory_bytes)?;
    // The segments stay as they are built: a thread writes one unless its memory is too small.
    writer.set_merge_policy(Box::new(NoMergePolicy));
    for (number, text) in bodies.iter().enumerate() {
        writer.add_document(document((id, body), number as u64, text))?;
    }
    writer.commit()?;
    let seconds = start.elapsed().as_secs_f64();
    writer.wait_merging_threads()?;
    Ok(BuiltIndex {
        index,
        id,
        body,
        seconds,
        folder: settings.folder.clone(),
    })
}

/// Returns the document with this id and body.
pub fn document((id, body): (Field, Field), number: u64, text: &str) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    document.add_u64(id, number);
    document.add_text(body, text);
    document
}

impl BuiltIndex {
    /// Prints the time and the sizes.
    pub fn print(&self) -> Result<(), Failure> {
        let searcher = self.index.reader()?.searcher();
        let segments = searcher.segment_readers();
        println!("documents {}", searcher.num_docs());
        println!("seconds {:.6}", self.seconds);
        println!("segments {}", segments.len());
        let (mut terms, mut postings, mut positions) = (0, 0, 0);
        for segment in segments {
            let inverted = segment.inverted_index(self.body)?;
            positions += inverted.total_num_tokens();
            terms += inverted.terms().num_terms();
            let mut stream = inverted.terms().stream()?;
            while let Some((_, term)) = stream.next() {
                postings += u64::from(term.doc_freq);
            }
        }
        println!("terms {terms}\npostings {postings}\npositions {positions}");
        let mut index_bytes = 0;
        for (suffix, bytes) in self.bytes_by_suffix()? {
            println!("bytes.{suffix} {bytes}");
            // `fast` has the ids, `store` the stored fields, of which there are none.
            if ["idx", "pos", "term", "fieldnorm"].contains(&suffix.as_str()) {
                index_bytes += bytes;
            }
        }
        println!("bytes {index_bytes}");
        Ok(())
    }

    fn bytes_by_suffix(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if let Some(suffix) = entry.path().extension() {
                let suffix = suffix.to_string_lossy().into_owned();
                *found.entry(suffix).or_default() += entry.metadata()?.len();
            }
        }
        Ok(found)
    }
}
