//! Why a record has its score, as data.

/// A part of a score with the parts that it is made of. Descriptions are those of Lucene's
/// `Explanation`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The value.
    pub value: f64,
    /// What the value is, or how it follows from the details.
    pub description: String,
    /// What the value is computed from.
    pub details: Vec<Explanation>,
}

impl Explanation {
    /// Creates an explanation.
    pub fn new(
        value: impl Into<f64>,
        description: impl Into<String>,
        details: Vec<Explanation>,
    ) -> Explanation {
        Explanation {
            value: value.into(),
            description: description.into(),
            details,
        }
    }
}
