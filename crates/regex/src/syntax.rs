//! PCRE's pattern syntax as a tree.
//!
//! Source: the manual page pcre2pattern of PCRE2 10.42, with UTF and without UCP as MongoDB uses
//! it: `\d`, `\w`, `\s` and `\b` are ASCII unless the pattern begins with `(*UCP)`. Not supported,
//! and refused: verbs inside a pattern, conditions, recursion, branch reset, callouts, `\C`, and
//! several groups with one name. Look-behinds may have a bounded length, as in PCRE2 10.43.

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

/// The options of a pattern, as the letters `i`, `m`, `s` and `x` set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Letters match in both cases.
    pub case_insensitive: bool,
    /// `^` and `$` match at the ends of lines as well.
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
    /// The first branch that leads to a match wins.
    Alternation(Vec<Node>),
    Repetition(Repetition),
    /// `(?>…)`: once matched, its other ways to match are not tried.
    Atomic(Box<Node>),
    LookAround {
        is_behind: bool,
        is_negated: bool,
        node: Box<Node>,
    },
    /// The text that a group matched. Fails if the group has matched nothing.
    BackReference {
        group: usize,
        case_insensitive: bool,
    },
    /// `\K`: the match begins here.
    MatchStart,
}

/// A condition on a position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Assertion {
    TextStart,
    /// `\G`: where the search begins.
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

/// What a word consists of.
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
                // The standard library's alphabetic characters have letters and some marks.
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

/// Which number of repetitions is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    Most,
    Fewest,
    /// The most, and no other: `a*+`.
    Possessive,
}

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) node: Node,
    /// Capturing groups, without the whole match.
    pub(crate) groups: usize,
}
