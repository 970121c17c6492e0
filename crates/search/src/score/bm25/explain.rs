//! How a score of BM25 came about, in the words of Lucene's `BM25Similarity`.

use windrow_postings::{length_code, length_of_code};

use super::{B, Bm25, K1, average_length, idf};
use crate::explanation::Explanation;
use crate::score::{FieldStatistics, Scorer};

/// A scorer with the numbers that it was made from.
#[derive(Clone, Debug)]
pub struct ExplainedBm25 {
    scorer: Bm25,
    boost: f32,
    field: FieldStatistics,
    records: Vec<u64>,
}

/// Lengths above are rounded.
const EXACT_LENGTHS: u32 = 39;

impl ExplainedBm25 {
    /// Creates the scorer of a term, or of a phrase of several terms: see [`Bm25::new`].
    pub fn new(boost: f32, field: FieldStatistics, records: Vec<u64>) -> ExplainedBm25 {
        ExplainedBm25 {
            scorer: Bm25::new(boost, field, &records),
            boost,
            field,
            records,
        }
    }

    /// Explains the score of a term or a phrase with this frequency in a field of this length.
    pub fn explanation(&self, frequency: f32, length: u32) -> Explanation {
        let mut details = Vec::new();
        if self.boost != 1.0 {
            details.push(Explanation::new(self.boost, "boost", Vec::new()));
        }
        details.push(self.idf());
        details.push(self.frequency_part(frequency, length));
        Explanation::new(
            self.scorer.score_phrase(frequency, length),
            format!("score(freq={frequency:?}), computed as boost * idf * tf from:"),
            details,
        )
    }

    fn idf(&self) -> Explanation {
        let mut all: Vec<Explanation> = self.records.iter().map(|one| self.idf_of(*one)).collect();
        if let [_] = all.as_slice()
            && let Some(only) = all.pop()
        {
            return only;
        }
        let sum: f64 = all.iter().map(|one| one.value).sum();
        Explanation::new(sum as f32, "idf, sum of:", all)
    }

    fn idf_of(&self, count: u64) -> Explanation {
        let records = self.field.records.max(count);
        let number = |value: u64, shown: &str| Explanation::new(value as f64, shown, Vec::new());
        let details = vec![
            number(count, "n, number of documents containing term"),
            number(records, "N, total number of documents with field"),
        ];
        Explanation::new(
            idf(count, records),
            "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
            details,
        )
    }

    fn frequency_part(&self, frequency: f32, length: u32) -> Explanation {
        let inverse_norm = self.scorer.norms.inverse_norm(length);
        let length_known = length_of_code(length_code(length).max(1));
        let shown_frequency = match self.records.len() {
            1 => "freq, occurrences of term within document".to_owned(),
            _ => format!("phraseFreq={frequency:?}"),
        };
        let shown_length = if length > EXACT_LENGTHS {
            "dl, length of field (approximate)"
        } else {
            "dl, length of field"
        };
        let number = |value: f32, shown: &str| Explanation::new(value, shown, Vec::new());
        let average = average_length(self.field);
        let details = vec![
            number(frequency, &shown_frequency),
            number(K1, "k1, term saturation parameter"),
            number(B, "b, length normalization parameter"),
            number(length_known as f32, shown_length),
            number(average, "avgdl, average length of field"),
        ];
        Explanation::new(
            1.0 - 1.0 / (1.0 + frequency * inverse_norm),
            "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
            details,
        )
    }
}
