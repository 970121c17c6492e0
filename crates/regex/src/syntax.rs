//! Parses PCRE's pattern syntax into a tree.
//!
//! Source: the manual page pcre2pattern of PCRE2 10.42. As in MongoDB, PCRE2's option UTF is set
//! and UCP is not: `\d`, `\w`, `\s` and `\b` are ASCII unless the pattern begins with `(*UCP)`. A
//! look-behind may have a variable length up to a bound, as in PCRE2 10.43.
//!
//! Not supported, and refused: verbs inside a pattern, conditions, recursion, branch reset,
//! callouts, `\C`, and several groups with one name.

mod bracket;
mod characters;
mod class;
mod escape;
mod parse;
mod prefix;
mod property;

use regex_syntax::hir::ClassUnicode;

pub(crate) use class::{contains, is_same_letter};
pub(crate) use parse::parse;
pub use prefix::prefix;

/// The options of a pattern, which the letters `i`, `m`, `s` and `x` set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Letters match in both cases.
    pub case_insensitive: bool,
    /// `^` and `$` match at the start and the end of each line as well.
    pub multiline: bool,
    /// `.` matches a line feed as well.
    pub dot_all: bool,
    /// White space and comments in the pattern are ignored.
    pub extended: bool,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// The empty text.
    Empty,
    /// One character.
    Literal(char),
    /// One character of a set.
    Class(ClassUnicode),
    Assertion(Assertion),
    /// A capturing group; the whole match is number 0.
    Group {
        number: usize,
        node: Box<Node>,
    },
    Concatenation(Vec<Node>),
    /// The branches are tried in order. The first one with which the whole pattern matches counts.
    Alternation(Vec<Node>),
    Repetition(Repetition),
    /// `(?>…)`: only the first match of the inner pattern is tried.
    Atomic(Box<Node>),
    LookAround {
        is_behind: bool,
        is_negated: bool,
        node: Box<Node>,
    },
    /// The text that a group matched. Does not match if the group took no part in the match so far.
    BackReference {
        group: usize,
        case_insensitive: bool,
    },
    /// `\K`: the reported match begins here.
    MatchStart,
}

/// A condition on a position in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Assertion {
    TextStart,
    /// `\G`: the position where the search begins.
    SearchStart,
    TextEnd,
    LineStart,
    LineEnd,
    /// `$` and `\Z`: at the end of the text, or before a line feed that ends it.
    TextEndOrFinalNewline,
    /// `\b`, and `\B` if negated.
    WordBoundary {
        is_negated: bool,
        word: Word,
    },
}

/// The characters of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// `[0-9A-Za-z_]`
    Ascii,
    /// `[\p{L}\p{N}_]`
    Unicode,
}

impl Word {
    pub(crate) fn contains(self, character: char) -> bool {
        character == '_'
            || match self {
                Word::Ascii => character.is_ascii_alphanumeric(),
                // `char::is_alphabetic` would include some marks, which are not in `\p{L}`.
                Word::Unicode => class::is_letter_or_number(character),
            }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Repetition {
    pub(crate) node: Box<Node>,
    pub(crate) least: u32,
    /// `None` for no limit.
    pub(crate) most: Option<u32>,
    pub(crate) greed: Greed,
}

/// The order in which numbers of repetitions are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    /// From the most to the fewest: `a*`.
    Most,
    /// From the fewest to the most: `a*?`.
    Fewest,
    /// Only the most: `a*+`.
    Possessive,
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) node: Node,
    /// The number of capturing groups, without the whole match.
    pub(crate) groups: usize,
}
