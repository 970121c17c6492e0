//! `--count-by`: how many of the documents that match have each value of a property.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_file_query::{Query, start_of_year_ms, year_of_ms};
use windrow_ingest::INDEX_NAME;

/// A property whose values are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedField {
    Extension,
    Kind,
    Language,
    Folder,
    /// The year of the last change.
    Year,
}

/// The names on the command line.
const NAMES: [(&str, CountedField); 5] = [
    ("ext", CountedField::Extension),
    ("kind", CountedField::Kind),
    ("lang", CountedField::Language),
    ("dir", CountedField::Folder),
    ("year", CountedField::Year),
];

/// Years that files can be of. Others are counted together.
const YEARS: RangeInclusive<i16> = 1970..=2100;
/// The greatest number of values of a facet of `$searchMeta`.
const VALUES_MAX: u32 = 1_000;
const OTHER_YEARS: &str = "other";

impl CountedField {
    /// Returns the field with this name.
    pub fn from_name(name: &str) -> Option<CountedField> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, field)| *field)
    }

    /// Returns the names, with commas between them.
    pub fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Returns the pipeline that counts the values among the documents of a query: at most `limit` of
    /// them, the most frequent ones.
    pub fn pipeline(self, query: &Query, limit: u32) -> ArrayBuf {
        let facet = match self {
            CountedField::Extension => string_facet("ext", limit),
            CountedField::Kind => string_facet("kind", limit),
            CountedField::Language => string_facet("language", limit),
            CountedField::Folder => string_facet("folders", limit),
            CountedField::Year => doc! {
                "type": "date", "path": "modified", "boundaries": (year_starts()),
                "default": OTHER_YEARS
            },
        };
        let facets = doc! { "operator": (query.to_operator()), "facets": { "values": (facet) } };
        array![{ "$searchMeta": { "index": INDEX_NAME, "facet": (facets) } }]
    }

    /// Writes the counts of the pipeline's only document, a value a line. Returns how many there are.
    pub fn write_counts(
        self,
        reply: Document<'_>,
        is_json: bool,
        output: &mut dyn Write,
    ) -> io::Result<usize> {
        let mut written = 0;
        let buckets = buckets_of(reply).into_iter().flatten();
        for bucket in buckets.filter_map(ValueRef::as_document) {
            let count = bucket
                .get("count")
                .and_then(ValueRef::as_whole)
                .unwrap_or(0);
            let Some(value) = self.shown(bucket).filter(|_| count > 0) else {
                continue;
            };
            written += 1;
            if is_json {
                writeln!(output, "{}", doc! { "value": (value), "count": (count) })?;
            } else {
                writeln!(output, "{count:8}  {value}")?;
            }
        }
        Ok(written)
    }

    fn shown(self, bucket: Document<'_>) -> Option<String> {
        match bucket.get("_id")?.to_value() {
            Value::String(text) => Some(text.chars().filter(|it| !it.is_control()).collect()),
            Value::DateTime(ms) => year_of_ms(ms).map(|year| year.to_string()),
            _ => None,
        }
    }
}

fn buckets_of(reply: Document<'_>) -> Option<Array<'_>> {
    let facets = reply.get("facet")?.as_document()?;
    let values = facets.get("values")?.as_document()?;
    values.get("buckets")?.as_array()
}

fn string_facet(path: &str, limit: u32) -> DocumentBuf {
    doc! { "type": "string", "path": (path), "numBuckets": (i64::from(limit.min(VALUES_MAX))) }
}

/// The first moments of the years, in UTC.
fn year_starts() -> ArrayBuf {
    let starts = YEARS.filter_map(start_of_year_ms);
    starts.map(Value::DateTime).collect()
}
