//! W1's rival: tantivy's index of the words and their frequencies in the bodies on standard input, one a
//! line. Timed is from the first document up to the end of the commit. Arguments: folder, threads, bytes
//! of memory, "none" or "english". Prints the documents, the seconds, the bytes of the index.

use std::io::BufRead;
use std::path::Path;
use std::time::Instant;

use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TantivyDocument};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, memory, language] = arguments.as_slice() else {
        return Err("arguments: folder, threads, bytes of memory, none or english".into());
    };
    let tokenizer = match language.as_str() {
        "none" => "default",
        "english" => "en_stem",
        other => return Err(format!("no language {other}").into()),
    };
    let bodies: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(tokenizer)
        .set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let body = schema.add_text_field("body", options);
    let index = Index::create_in_dir(folder, schema.build())?;
    let begin = Instant::now();
    let mut writer: IndexWriter =
        index.writer_with_num_threads(threads.parse()?, memory.parse()?)?;
    for text in &bodies {
        let mut document = TantivyDocument::default();
        document.add_text(body, text);
        writer.add_document(document)?;
    }
    writer.commit()?;
    let seconds = begin.elapsed().as_secs_f64();
    let found = index.reader()?.searcher().num_docs();
    println!(
        "documents {found}\nseconds {seconds:.6}\nbytes {}",
        bytes_below(folder.as_ref())?
    );
    Ok(())
}

fn bytes_below(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
