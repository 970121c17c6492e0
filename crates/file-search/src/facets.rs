//! Counts the values of properties among the matching documents.

use std::ops::RangeInclusive;

use windrow_document::{Array, ArrayBuf, Document, DocumentBuf, Value, ValueRef, array, doc};
use windrow_file_query::{INDEX_NAME, TimeContext};

/// A property whose values are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedField {
    /// The author, or a sender of a mail.
    Author,
    /// The file extension.
    Extension,
    /// The kind of document.
    Kind,
    /// The language of the text.
    Language,
    /// The folders that contain the file.
    Folder,
    /// The year of the last modification.
    Year,
}

/// A value of a property, and the number of documents with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueCount {
    /// The value.
    pub value: String,
    /// The number of documents.
    pub count: i64,
}

/// The names on the command line.
const NAMES: [(&str, CountedField); 6] = [
    ("author", CountedField::Author),
    ("ext", CountedField::Extension),
    ("kind", CountedField::Kind),
    ("lang", CountedField::Language),
    ("dir", CountedField::Folder),
    ("year", CountedField::Year),
];

/// The years that are counted separately. Others are counted together.
const YEARS: RangeInclusive<i16> = 1970..=2100;
/// The maximum number of values of a facet of `$searchMeta`.
const VALUES_MAX: u32 = 1_000;
const OTHER_YEARS: &str = "other";
/// The name of the facet of senders, which is added to that of authors.
const SENDERS: &str = "senders";

/// Returns the pipeline that computes facets of the documents of an operator.
pub fn counting_facets(operator: &DocumentBuf, facets: DocumentBuf) -> ArrayBuf {
    let facet = doc! { "operator": (operator.clone()), "facets": (facets) };
    array![{ "$searchMeta": {
        "index": INDEX_NAME, "facet": (facet), "count": { "type": "total" }
    } }]
}

impl CountedField {
    /// Returns the field with this name.
    pub fn from_name(name: &str) -> Option<CountedField> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, field)| *field)
    }

    /// Returns all names, separated by commas.
    pub fn names() -> String {
        CountedField::all_names().join(", ")
    }

    /// Returns all names.
    pub fn all_names() -> [&'static str; 6] {
        NAMES.map(|(name, _)| name)
    }

    /// Returns the pipeline that counts the `limit` most frequent values among the documents of an
    /// operator.
    pub fn pipeline(self, operator: &DocumentBuf, limit: u32) -> ArrayBuf {
        let mut facets = DocumentBuf::new();
        self.push_facets(&mut facets, limit);
        counting_facets(operator, facets)
    }

    /// Adds the facets of this field to those of a pipeline, see [`counting_facets`].
    pub fn push_facets(self, facets: &mut DocumentBuf, limit: u32) {
        let values = match self {
            CountedField::Author => string_facet("author", VALUES_MAX),
            CountedField::Extension => string_facet("ext", limit),
            CountedField::Kind => string_facet("kind", limit),
            CountedField::Language => string_facet("language", limit),
            CountedField::Folder => string_facet("folders", limit),
            CountedField::Year => doc! {
                "type": "date", "path": "modified", "boundaries": (year_starts()),
                "default": OTHER_YEARS
            },
        };
        facets.push(self.name(), values);
        if self == CountedField::Author {
            facets.push(SENDERS, string_facet("from", VALUES_MAX));
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, field)| *field == self);
        found.map_or("", |(name, _)| *name)
    }

    /// Returns the counts from the only document of the pipeline, in descending order. Years are in
    /// ascending order of time.
    pub fn counts(self, reply: Document<'_>, limit: u32) -> Vec<ValueCount> {
        let mut counts: Vec<ValueCount> = Vec::new();
        let names = match self {
            CountedField::Author => vec![self.name(), SENDERS],
            _ => vec![self.name()],
        };
        let buckets = names.into_iter().map(|name| facet_buckets(reply, name));
        let buckets = buckets.flatten().flatten();
        for bucket in buckets.filter_map(ValueRef::as_document) {
            let count = bucket.get("count").and_then(ValueRef::as_whole);
            let count = count.unwrap_or(0);
            let Some(value) = self.shown(bucket).filter(|_| count > 0) else {
                continue;
            };
            match counts.iter_mut().find(|known| known.value == value) {
                Some(known) => known.count += count,
                None => counts.push(ValueCount { value, count }),
            }
        }
        if self == CountedField::Author {
            counts.sort_by(|one, other| {
                let by_count = other.count.cmp(&one.count);
                by_count.then_with(|| one.value.cmp(&other.value))
            });
        }
        if self != CountedField::Year {
            counts.truncate(limit as usize);
        }
        counts
    }

    fn shown(self, bucket: Document<'_>) -> Option<String> {
        match bucket.get("_id")?.to_value() {
            Value::String(text) => Some(text.chars().filter(|it| !it.is_control()).collect()),
            Value::DateTime(ms) => {
                let year = TimeContext::system().year_of_ms(ms)?;
                Some(year.to_string())
            }
            _ => None,
        }
    }
}

/// Returns the buckets of a facet from the only document of its pipeline.
pub fn facet_buckets<'d>(reply: Document<'d>, name: &str) -> Option<Array<'d>> {
    let facets = reply.get("facet")?.as_document()?;
    let values = facets.get(name)?.as_document()?;
    values.get("buckets")?.as_array()
}

fn string_facet(path: &str, limit: u32) -> DocumentBuf {
    doc! { "type": "string", "path": (path), "numBuckets": (i64::from(limit.min(VALUES_MAX))) }
}

/// Returns the starts of the years in the time zone of this machine, which queries also use.
fn year_starts() -> ArrayBuf {
    let times = TimeContext::system();
    let starts = YEARS.filter_map(|year| times.start_of_year_ms(year));
    starts.map(Value::DateTime).collect()
}
