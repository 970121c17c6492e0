//! Operators: lists of records that are computed from other lists.
//!
//! | operator | records |
//! |---|---|
//! | [`Conjunction`] | in all of some lists |
//! | [`Disjunction`] | in any of some lists |
//! | [`Union`] | in any of some terms, all with one score: for filters |
//! | [`AtLeast`] | in at least a minimum number of some lists |
//! | [`Without`] | in one list and not in another one |
//! | [`Optional`] | in a list; another list adds to the score |
//! | [`Rescore`] | in a list, with other scores: a constant, or the results of a function |
//! | [`Filter`] | ids of another index, all with one score |
//! | [`Near`] | with some values, with scores by their distances |
//! | [`Phrase`] | with some terms next to each other, or not far apart |
//!
//! [`Node`] is any of them, so that they can be nested.

mod at_least;
mod conjunction;
mod disjunction;
mod filter;
mod near;
mod node;
mod optional;
mod phrase;
mod rescore;
mod sloppy;
mod union;
mod without;

pub use at_least::AtLeast;
pub use conjunction::Conjunction;
pub use disjunction::Disjunction;
pub use filter::Filter;
pub use near::{Near, Nearness};
pub use node::Node;
pub use optional::Optional;
pub use phrase::{Phrase, PhraseTerm};
pub use rescore::{ConstantScore, FunctionScore, Rescore};
pub use union::Union;
pub use without::Without;
