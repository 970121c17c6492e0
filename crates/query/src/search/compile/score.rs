//! Compiles the option `score` of operators.

use std::convert::Infallible;

use windrow_document::ValueRef;
use windrow_search::{Query, ScoreFunction, ValueNumber};

use super::{Compiler, key_range};
use crate::search::operator::{FieldValue, Score};
use crate::search::source::{RecordValues, ValueRange};

impl Compiler<'_> {
    /// Returns the query with the score that an operator asks for.
    pub(super) fn with_score(&mut self, query: Query, score: &Score) -> Query {
        match score {
            Score::AsIs => query,
            Score::Boost(boost) => query.boost(*boost),
            Score::Constant(score) => Query::Constant {
                query: Box::new(query),
                score: *score,
            },
            Score::Function(function) => Query::Function {
                query: Box::new(query),
                function: self.function(function),
            },
        }
    }

    fn function(&mut self, function: &ScoreFunction<FieldValue>) -> ScoreFunction<ValueNumber> {
        let Ok(function) =
            function.try_map(&mut |field| Ok::<_, Infallible>(self.field_value(field)));
        function
    }

    /// Adds a field to the values that the query reads: its numbers and dates.
    fn field_value(&mut self, field: &FieldValue) -> ValueNumber {
        let path = &field.path;
        let mapping = self.definition.field(path);
        let ranges = mapping.into_iter().flat_map(|mapping| {
            let likes = [ValueRef::Int32(0), ValueRef::DateTime(0)].into_iter();
            likes.filter_map(|like| key_range(path, mapping, like, None, None))
        });
        let ranges = ranges.map(|keys| ValueRange {
            path: path.clone(),
            keys,
        });
        ValueNumber {
            number: self.value_number(RecordValues::Numbers(ranges.collect())),
            undefined: field.undefined,
        }
    }
}
