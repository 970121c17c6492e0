//! Compiles the option `score` of operators.

use windrow_document::ValueRef;
use windrow_search::{Query, ScoreFunction, ValueNumber};

use super::{Compiler, all_of_type};
use crate::search::operator::{Expression, FieldValue, Score};

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
            Score::Function(expression) => Query::Function {
                query: Box::new(query),
                function: self.function(expression),
            },
        }
    }

    fn function(&mut self, expression: &Expression) -> ScoreFunction {
        match expression {
            Expression::Relevance => ScoreFunction::Relevance,
            Expression::Constant(number) => ScoreFunction::Constant(*number),
            Expression::Field(field) => ScoreFunction::Value(self.value(field)),
            Expression::Gauss {
                field,
                origin,
                offset,
                scale,
                decay,
            } => ScoreFunction::Gauss {
                value: self.value(field),
                origin: *origin,
                offset: *offset,
                scale: *scale,
                decay: *decay,
            },
            Expression::Add(all) => ScoreFunction::Add(self.functions(all)),
            Expression::Multiply(all) => ScoreFunction::Multiply(self.functions(all)),
            Expression::Log(inner) => ScoreFunction::Log(Box::new(self.function(inner))),
            Expression::Log1p(inner) => ScoreFunction::Log1p(Box::new(self.function(inner))),
        }
    }

    fn functions(&mut self, all: &[Expression]) -> Vec<ScoreFunction> {
        all.iter().map(|one| self.function(one)).collect()
    }

    /// Adds a field to the values that the query reads: its numbers and dates.
    fn value(&mut self, field: &FieldValue) -> ValueNumber {
        let path = &field.path;
        let mapping = self.definition.field(path);
        let ranges = mapping.into_iter().flat_map(|mapping| {
            let likes = [ValueRef::Int32(0), ValueRef::DateTime(0)].into_iter();
            likes.filter_map(|like| all_of_type(path, mapping, like))
        });
        let ranges = ranges.map(|range| (path.clone(), range)).collect();
        self.conditions.values.push(ranges);
        ValueNumber {
            number: self.conditions.values.len() - 1,
            undefined: field.undefined,
        }
    }
}
