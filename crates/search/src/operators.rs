//! Operators: lists of records made of other lists.
//!
//! | operator | records |
//! |---|---|
//! | [`Conjunction`] | in all of some lists |
//! | [`Disjunction`] | in any of some lists |
//! | [`Union`] | in any of some terms, all with one score: for filters |
//! | [`AtLeast`] | in at least so many of some lists |
//! | [`Without`] | in a list and not in another one |
//! | [`Optional`] | in a list; another one adds to the score |
//! | [`Constant`] | in a list, all with one score |
//! | [`Filter`] | ids of another index, all with one score |
//! | [`Scored`] | in memory, each with a score of its own |
//! | [`Rescored`] | in a list, with scores that a function changes |
//! | [`Phrase`] | with some terms next to each other, or not far apart |
//!
//! [`Node`] is any of them, so that they can be nested.

mod at_least;
mod conjunction;
mod constant;
mod disjunction;
mod node;
mod optional;
mod phrase;
mod rescored;
mod scored;
mod sloppy;
mod union;
mod without;

pub use at_least::AtLeast;
pub use conjunction::Conjunction;
pub use constant::{Constant, Filter};
pub use disjunction::Disjunction;
pub use node::Node;
pub use optional::Optional;
pub use phrase::{Phrase, PhraseTerm};
pub use rescored::Rescored;
pub use scored::{Scored, ScoredRecord};
pub use union::Union;
pub use without::Without;
