//! Explanations of scores, as data.

/// A score, or a part of one, with the parts from which it is computed. The descriptions are those
/// of Lucene's `Explanation`.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The value.
    pub value: f64,
    /// The meaning of the value, or the formula that computes it from the details.
    pub description: String,
    /// The parts from which the value is computed.
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
