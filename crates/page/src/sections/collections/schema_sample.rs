//! Statistics of a sample of documents: fields, types and distributions of values.

use std::collections::BTreeMap;

use windrow_document::{Document, Type, ValueRef};

/// The maximum number of fields.
pub const FIELDS_MAX: usize = 500;
/// The maximum depth of fields.
const DEPTH_MAX: usize = 6;
/// The maximum number of distinct strings that are counted of a field.
const TEXTS_MAX: usize = 1_000;
/// Strings are compared by this many bytes.
const TEXT_BYTES_MAX: usize = 60;
/// The number of bars of a histogram.
pub const BARS: usize = 16;

/// The statistics of the fields, by path.
#[derive(Debug, Default)]
pub struct SchemaSample {
    /// The number of documents.
    pub documents: usize,
    /// The fields, in the order of their first occurrence.
    pub fields: Vec<Field>,
    positions: BTreeMap<String, usize>,
}

/// The statistics of a field.
#[derive(Debug, Default)]
pub struct Field {
    /// The path. `[]` denotes the elements of an array.
    pub path: String,
    /// The number of documents with the field.
    pub documents: usize,
    last_document: usize,
    /// The number of values of each type.
    pub types: Vec<(Type, usize)>,
    numbers: Vec<f64>,
    dates: Vec<f64>,
    texts: BTreeMap<String, usize>,
}

/// The distribution of the values of a field.
#[derive(Debug, PartialEq)]
pub enum Distribution {
    /// Numbers: a histogram with bars of equal width.
    Numbers {
        /// The minimum.
        low: f64,
        /// The maximum.
        high: f64,
        /// The number of values of each bar.
        bars: [usize; BARS],
    },
    /// Dates, in milliseconds since 1970-01-01 UTC.
    Dates {
        /// The first date.
        low: f64,
        /// The last date.
        high: f64,
        /// The number of values of each bar.
        bars: [usize; BARS],
    },
    /// Strings: the most frequent ones with their counts.
    Texts(Vec<(String, usize)>),
}

impl SchemaSample {
    /// Adds a document.
    pub fn add(&mut self, document: Document<'_>) {
        self.documents += 1;
        self.add_fields(document, "", 0);
    }

    fn add_fields(&mut self, document: Document<'_>, prefix: &str, depth: usize) {
        for (name, value) in document.iter() {
            self.add_value(format!("{prefix}{name}"), value, depth);
        }
    }

    fn add_value(&mut self, path: String, value: ValueRef<'_>, depth: usize) {
        let known = self.positions.get(&path).copied();
        let position = match known {
            Some(position) => position,
            None if self.fields.len() >= FIELDS_MAX => return,
            None => {
                self.positions.insert(path.clone(), self.fields.len());
                let field = Field {
                    path: path.clone(),
                    ..Field::default()
                };
                self.fields.push(field);
                self.fields.len() - 1
            }
        };
        let document = self.documents;
        if let Some(field) = self.fields.get_mut(position) {
            field.add(value, document);
        }
        match value {
            ValueRef::Document(inner) if depth < DEPTH_MAX => {
                self.add_fields(inner, &format!("{path}."), depth + 1);
            }
            ValueRef::Array(array) if depth < DEPTH_MAX => {
                for element in array.iter().take(FIELDS_MAX) {
                    self.add_value(format!("{path}[]"), element, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns the fields in the order of a depth-first walk: nested fields follow their parent.
    pub fn sorted(&self) -> Vec<&Field> {
        let mut fields: Vec<&Field> = self.fields.iter().collect();
        let top = |path: &str| {
            let end = path.find(['.', '[']).unwrap_or(path.len());
            let name = path.get(..end).unwrap_or(path);
            self.positions.get(name).copied().unwrap_or(usize::MAX)
        };
        fields.sort_by_key(|field| (top(&field.path), field.path.matches(['.', '[']).count() > 0));
        fields
    }
}

impl Field {
    fn add(&mut self, value: ValueRef<'_>, document: usize) {
        self.documents += usize::from(self.last_document != document);
        self.last_document = document;
        let kind = value.type_of();
        match self.types.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.types.push((kind, 1)),
        }
        match value {
            ValueRef::DateTime(millis) => self.dates.push(millis as f64),
            ValueRef::String(text) => self.add_text(text),
            ValueRef::Bool(flag) => self.add_text(if flag { "true" } else { "false" }),
            number => self
                .numbers
                .extend(number.as_f64().filter(|it| it.is_finite())),
        }
    }

    fn add_text(&mut self, text: &str) {
        let (start, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
        let text = if rest.is_empty() {
            start.to_owned()
        } else {
            format!("{start}…")
        };
        if self.texts.len() < TEXTS_MAX || self.texts.contains_key(&text) {
            *self.texts.entry(text).or_default() += 1;
        }
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.types.iter().map(|(_, count)| count).sum()
    }

    /// Returns the distribution of the most frequent kind of values.
    pub fn distribution(&self) -> Option<Distribution> {
        let texts: usize = self.texts.values().sum();
        let most = self.numbers.len().max(self.dates.len()).max(texts);
        if most == 0 {
            return None;
        }
        if self.numbers.len() == most {
            let Histogram { low, high, bars } = histogram(&self.numbers);
            return Some(Distribution::Numbers { low, high, bars });
        }
        if self.dates.len() == most {
            let Histogram { low, high, bars } = histogram(&self.dates);
            return Some(Distribution::Dates { low, high, bars });
        }
        let mut texts: Vec<(String, usize)> = self.texts.clone().into_iter().collect();
        texts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        texts.truncate(5);
        Some(Distribution::Texts(texts))
    }
}

/// A histogram with bars of equal width.
struct Histogram {
    low: f64,
    high: f64,
    bars: [usize; BARS],
}

fn histogram(values: &[f64]) -> Histogram {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut bars = [0; BARS];
    for value in values {
        // Halves are subtracted, because the difference of the extremes may overflow to infinity.
        let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        let bar = if part.is_finite() {
            (part * BARS as f64) as usize
        } else {
            0
        };
        if let Some(count) = bars.get_mut(bar.min(BARS - 1)) {
            *count += 1;
        }
    }
    Histogram { low, high, bars }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn sample(documents: &[windrow_document::DocumentBuf]) -> SchemaSample {
        let mut sample = SchemaSample::default();
        for document in documents {
            sample.add(document.as_document());
        }
        sample
    }

    #[test]
    fn fields_have_types() {
        let sample = sample(&[
            doc! { "a": 1, "b": { "c": "x" }, "d": [1, 2] },
            doc! { "a": "y", "d": [{ "e": true }] },
        ]);
        let paths: Vec<&str> = sample.sorted().iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["a", "b", "b.c", "d", "d[]", "d[].e"]);
        let field = |path: &str| sample.fields.iter().find(|it| it.path == path).unwrap();
        assert_eq!(field("a").types, [(Type::Int32, 1), (Type::String, 1)]);
        assert_eq!((field("d[]").documents, field("d[]").values()), (2, 3));
        assert_eq!(field("b.c").documents, 1);
    }

    #[test]
    fn values_have_distributions() {
        let documents: Vec<_> = (0..32)
            .map(|n| doc! { "n": n, "t": (["x", "y", "y"][n as usize % 3]) })
            .collect();
        let sample = sample(&documents);
        let expected = Distribution::Numbers {
            low: 0.0,
            high: 31.0,
            bars: [2; BARS],
        };
        assert_eq!(sample.fields[0].distribution(), Some(expected));
        let Some(Distribution::Texts(texts)) = sample.fields[1].distribution() else {
            panic!("texts");
        };
        assert_eq!(texts[0].0, "y");
        assert_eq!(histogram(&[f64::MIN, f64::MAX]).bars[BARS - 1], 1);
        assert_eq!(histogram(&[3.0, 3.0]).bars[0], 2);
    }

    #[test]
    fn there_are_not_too_many_fields() {
        let mut wide = windrow_document::DocumentBuf::new();
        for number in 0..2_000 {
            wide.push(&number.to_string(), 1);
        }
        assert_eq!(sample(&[wide]).fields.len(), FIELDS_MAX);
    }
}
