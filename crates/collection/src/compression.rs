//! The compression of a collection's documents, from its options.
//!
//! The spelling is MongoDB's,
//! `storageEngine: {wiredTiger: {configString: "block_compressor=zstd"}}`, and the same under
//! `windrow`.

use windrow_document::{Document, ValueRef};
use windrow_storage::Compression;

const ENGINES: [&str; 2] = ["wiredTiger", "windrow"];
const COMPRESSORS: [(&str, Compression); 3] = [
    ("lz4", Compression::Lz4),
    ("zstd", Compression::Zstd),
    ("none", Compression::None),
];

/// Returns the compression in the options, or `None` if they specify none. Fails with a sentence
/// about what is wrong.
pub fn from_options(options: Document<'_>) -> Result<Option<Compression>, String> {
    let Some(engines) = options.get("storageEngine").and_then(ValueRef::as_document) else {
        return Ok(None);
    };
    let mut compression = None;
    for (engine, value) in engines.iter() {
        if !ENGINES.contains(&engine) {
            return Err(format!(
                "storageEngine has an option that is not known: '{engine}'"
            ));
        }
        let Some(of_engine) = value.as_document() else {
            return Err(format!("'storageEngine.{engine}' has to be a document"));
        };
        for (name, value) in of_engine.iter() {
            let Some(text) = value.as_str().filter(|_| name == "configString") else {
                return Err(format!(
                    "storageEngine.{engine} has an option that is not known: '{name}'"
                ));
            };
            compression = parse_config(text)?.or(compression);
        }
    }
    Ok(compression)
}

/// Parses `block_compressor=…`, the only setting that is allowed.
fn parse_config(text: &str) -> Result<Option<Compression>, String> {
    let parts = text.split(',').map(str::trim);
    let mut compression = None;
    for part in parts.filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if name.trim() != "block_compressor" {
            return Err(format!(
                "configString has an option that is not known: '{part}'"
            ));
        }
        let known = COMPRESSORS.iter().find(|(known, _)| *known == value.trim());
        let Some((_, named)) = known else {
            return Err(format!(
                "the block compressor '{value}' is not there; there are lz4, zstd and none"
            ));
        };
        compression = Some(*named);
    }
    Ok(compression)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    #[test]
    fn compressors_are_parsed() {
        let check = |engine: DocumentBuf, expected: Result<Option<Compression>, &str>| {
            let options = doc! { "storageEngine": (engine.clone()) };
            let found = from_options(options.as_document());
            assert_eq!(found, expected.map_err(str::to_owned), "{engine}");
        };
        let text = |text: &str| doc! { "wiredTiger": { "configString": text } };
        check(doc! {}, Ok(None));
        check(text(""), Ok(None));
        check(text("block_compressor=zstd"), Ok(Some(Compression::Zstd)));
        check(text("block_compressor=lz4,"), Ok(Some(Compression::Lz4)));
        check(
            text(" block_compressor = none"),
            Ok(Some(Compression::None)),
        );
        check(
            doc! { "windrow": { "configString": "block_compressor=zstd" } },
            Ok(Some(Compression::Zstd)),
        );
        check(
            text("block_compressor=snappy"),
            Err("the block compressor 'snappy' is not there; there are lz4, zstd and none"),
        );
        check(
            text("block_compressor=zstd,access_pattern_hint=random"),
            Err("configString has an option that is not known: 'access_pattern_hint=random'"),
        );
        check(
            doc! { "rocksdb": {} },
            Err("storageEngine has an option that is not known: 'rocksdb'"),
        );
        check(
            doc! { "wiredTiger": { "x": 1 } },
            Err("storageEngine.wiredTiger has an option that is not known: 'x'"),
        );
    }
}
