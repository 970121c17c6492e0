//! Queries the index with words of some documents, which must be found.

use std::time::Instant;

use super::bodies::Bodies;
use crate::bson::Value;
use crate::client::Connection;
use crate::error::BenchError;
use crate::load::{COLLECTION, DATABASE};
use crate::report::{HASH_START, hash, median};

const QUERIES: u64 = 50;

/// Queries the longest words of some documents. Returns a hash of the results and the median time
/// of a query in milliseconds.
pub fn ask(connection: &mut Connection, bodies: &Bodies) -> Result<([u8; 8], f64), BenchError> {
    let mut sum = HASH_START;
    let mut milliseconds = Vec::new();
    let queries = QUERIES.min(bodies.documents);
    for place in 0..queries {
        let number = place * bodies.documents / queries;
        let Some(word) = longest_word(bodies, number) else {
            continue;
        };
        let start = Instant::now();
        let mut answer = search(connection, &word)?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        if bodies.distinct && !answer.iter().any(|(id, _)| *id == number) {
            let text = format!("$text does not find {word:?} in document {number}");
            return Err(BenchError::Server(text));
        }
        answer.sort_unstable();
        for (id, score) in answer {
            sum = hash(hash(sum, &id.to_le_bytes()), &score.to_le_bytes());
        }
    }
    Ok((sum.to_le_bytes(), median(&milliseconds)))
}

fn longest_word(bodies: &Bodies, number: u64) -> Option<String> {
    let mut body = Vec::new();
    (bodies.body)(number, &mut body);
    let text = String::from_utf8_lossy(&body);
    let plain = |word: &&str| word.chars().all(char::is_alphanumeric);
    text.split_whitespace()
        .filter(plain)
        .max_by_key(|word| word.len())
        .map(str::to_owned)
}

/// Returns the ten best documents for a word, with the bits of their scores.
fn search(connection: &mut Connection, word: &str) -> Result<Vec<(u64, u64)>, BenchError> {
    let reply = connection.run(DATABASE, |writer| {
        writer.string("find", COLLECTION);
        writer.document("filter", |filter| {
            filter.document("$text", |text| text.string("$search", word));
        });
        writer.document("projection", |projection| {
            projection.document("score", |score| score.string("$meta", "textScore"));
        });
        writer.document("sort", |sort| {
            sort.document("score", |score| score.string("$meta", "textScore"));
            sort.int32("_id", 1);
        });
        writer.int32("limit", 10);
        writer.boolean("singleBatch", true);
    })?;
    let Some(Value::Array(batch)) = reply.get("cursor.firstBatch") else {
        return Err(BenchError::Server("a reply without a batch".into()));
    };
    Ok(batch
        .iter()
        .filter_map(|(_, value)| id_and_score(value))
        .collect())
}

fn id_and_score(value: Value) -> Option<(u64, u64)> {
    let Value::Document(document) = value else {
        return None;
    };
    Some((
        document.number("_id")? as u64,
        document.number("score")?.to_bits(),
    ))
}
