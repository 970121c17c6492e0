//! Parses a pattern in one pass over its characters. A second pass follows if a named reference
//! precedes its group.

mod group;
mod reference;

use std::collections::HashMap;

use super::bracket::{self, BracketOptions};
use super::characters::Characters;
use super::class;
use super::escape::{EscapeParser, Member};
use super::{Assertion, Greed, Node, Options, Pattern, Repetition, Word};
use crate::ParseError;

const MATCH_START_IN_LOOK_AROUND: &str =
    r"\K is not allowed in lookarounds (but see PCRE2_EXTRA_ALLOW_LOOKAROUND_BSK)";

/// The largest number in a quantifier, as in PCRE2.
const REPETITIONS_MAX: u32 = 65_535;

/// Verbs at the start of a pattern that have no effect. They select what this crate always does
/// (UTF-8, a line feed as the end of a line, `\R` for all Unicode line ends), or turn off
/// optimisations of PCRE2.
const NEUTRAL_VERBS: [&str; 8] = [
    "(*UTF8)",
    "(*UTF)",
    "(*NO_START_OPT)",
    "(*NO_AUTO_POSSESS)",
    "(*NO_DOTSTAR_ANCHOR)",
    "(*NO_JIT)",
    "(*LF)",
    "(*BSR_UNICODE)",
];

/// Parses a pattern. Fails if it is malformed or not supported.
pub(crate) fn parse(pattern: &str, options: Options) -> Result<Pattern, ParseError> {
    let mut parser = Parser::new(pattern, options, Names::default());
    let mut node = parser.pattern()?;
    if parser.has_unknown_names {
        // A reference may precede its group. The second pass knows the names of all groups.
        let names = std::mem::take(&mut parser.names);
        parser = Parser::new(pattern, options, names);
        node = parser.pattern()?;
        if parser.has_unknown_names {
            return Err(ParseError::new("reference to non-existent subpattern"));
        }
    }
    if parser.highest_reference > parser.groups {
        return Err(ParseError::new("reference to non-existent subpattern"));
    }
    Ok(Pattern {
        node,
        groups: parser.groups,
    })
}

/// The options that a group may change. The change ends with the group.
#[derive(Clone, Copy)]
struct Scope {
    options: Options,
    /// `(?U)`: quantifiers are lazy, and greedy with a question mark.
    is_ungreedy: bool,
    /// `(?xx)`: spaces and tabs in classes are also ignored.
    ignores_class_spaces: bool,
    /// `(?n)`: parentheses without a name do not capture.
    captures_names_only: bool,
}

impl Scope {
    fn new(options: Options) -> Scope {
        Scope {
            options,
            is_ungreedy: false,
            ignores_class_spaces: false,
            captures_names_only: false,
        }
    }
}

type Names = HashMap<String, usize>;

struct Parser {
    characters: Characters,
    scope: Scope,
    depth: usize,
    /// The number of open groups that are look-arounds.
    look_arounds: usize,
    /// `(*UCP)`: classes and word boundaries follow Unicode.
    is_unicode: bool,
    groups: usize,
    highest_reference: usize,
    /// The group number of each name that the pass before has found.
    names: Names,
    /// The group number of each name that this pass has found so far.
    named: Names,
    has_unknown_names: bool,
}

/// A piece of a branch, as [`Parser::piece`] returns it.
enum Piece {
    /// A node that may have a quantifier.
    Node(Node),
    /// A node that may not have a quantifier.
    Assertion(Node),
    /// A comment or an ignored space. A quantifier after it belongs to the piece before it.
    Nothing,
    /// Options for the rest of the group, which may not have a quantifier.
    Options,
}

impl Parser {
    fn new(pattern: &str, options: Options, names: Names) -> Parser {
        Parser {
            characters: Characters::new(pattern),
            scope: Scope::new(options),
            depth: 0,
            look_arounds: 0,
            is_unicode: false,
            groups: 0,
            highest_reference: 0,
            names,
            named: Names::default(),
            has_unknown_names: false,
        }
    }

    fn escapes(&mut self) -> EscapeParser<'_> {
        EscapeParser {
            characters: &mut self.characters,
            is_unicode: self.is_unicode,
        }
    }

    fn brackets(&mut self) -> Result<Node, ParseError> {
        for (name, is_behind) in [("[:<:]]", false), ("[:>:]]", true)] {
            if self.characters.take(name) {
                return self.word_edge(is_behind);
            }
        }
        let options = BracketOptions {
            ignores_case: self.is_case_insensitive(),
            ignores_spaces: self.scope.ignores_class_spaces,
            is_unicode: self.is_unicode,
        };
        Ok(Node::Class(bracket::class(&mut self.characters, options)?))
    }

    /// Returns the condition `[[:<:]]`, the start of a word, or `[[:>:]]`, its end.
    fn word_edge(&self, is_behind: bool) -> Result<Node, ParseError> {
        let word = class::parse(&format!("[{}]", class::sets(self.is_unicode).word))?;
        let beside = Node::LookAround {
            is_behind,
            is_negated: false,
            node: Box::new(Node::Class(word)),
        };
        let boundary = Node::Assertion(self.word_boundary(false));
        Ok(Node::Concatenation(vec![boundary, beside]))
    }

    fn word_boundary(&self, is_negated: bool) -> Assertion {
        let word = if self.is_unicode {
            Word::Unicode
        } else {
            Word::Ascii
        };
        Assertion::WordBoundary { is_negated, word }
    }

    fn is_case_insensitive(&self) -> bool {
        self.scope.options.case_insensitive
    }

    fn pattern(&mut self) -> Result<Node, ParseError> {
        self.verbs();
        let node = self.alternation()?;
        if self.characters.peek().is_some() {
            return Err(ParseError::new("unmatched closing parenthesis"));
        }
        self.names.extend(self.named.drain());
        Ok(node)
    }

    /// Skips `(*UCP)` and other verbs at the start.
    fn verbs(&mut self) {
        loop {
            if self.characters.take("(*UCP)") {
                self.is_unicode = true;
            } else if !NEUTRAL_VERBS.iter().any(|verb| self.characters.take(verb)) {
                return;
            }
        }
    }

    /// Parses branches up to a closing parenthesis or the end of the pattern.
    fn alternation(&mut self) -> Result<Node, ParseError> {
        let first = self.branch()?;
        if self.characters.peek() != Some('|') {
            return Ok(first);
        }
        let mut branches = vec![first];
        while self.characters.take("|") {
            branches.push(self.branch()?);
        }
        Ok(Node::Alternation(branches))
    }

    fn branch(&mut self) -> Result<Node, ParseError> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut may_repeat = false;
        while let Some(character) = self.characters.peek() {
            if matches!(character, '|' | ')') {
                break;
            }
            self.characters.skip(1);
            if let Some((least, most)) = self.quantifier(character)? {
                let node = nodes.pop().filter(|_| may_repeat).ok_or_else(|| {
                    ParseError::new("quantifier does not follow a repeatable item")
                })?;
                nodes.push(self.repetition(node, least, most));
                may_repeat = false;
                continue;
            }
            match self.piece(character, &mut nodes)? {
                Piece::Node(node) => {
                    nodes.push(node);
                    may_repeat = true;
                }
                Piece::Assertion(node) => {
                    nodes.push(node);
                    may_repeat = false;
                }
                Piece::Nothing => {}
                Piece::Options => may_repeat = false,
            }
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.pop().unwrap_or(Node::Empty),
            _ => Node::Concatenation(nodes),
        })
    }

    /// Parses the piece that begins with `character`, which is already skipped. If the piece is
    /// quoted text, adds all but its last character to `nodes`, because a quantifier belongs to the
    /// last one alone.
    fn piece(&mut self, character: char, nodes: &mut Vec<Node>) -> Result<Piece, ParseError> {
        let options = self.scope.options;
        let node = match character {
            '\\' if self.characters.take("Q") => return self.quoted(nodes),
            '\\' if self.characters.take("E") => return Ok(Piece::Nothing),
            '\\' => self.escape()?,
            '[' => self.brackets()?,
            '(' => return self.group(),
            '^' if options.multiline => Node::Assertion(Assertion::LineStart),
            '^' => Node::Assertion(Assertion::TextStart),
            '$' if options.multiline => Node::Assertion(Assertion::LineEnd),
            '$' => Node::Assertion(Assertion::TextEndOrFinalNewline),
            '#' if options.extended => {
                self.characters.skip_line();
                return Ok(Piece::Nothing);
            }
            space if options.extended && is_pattern_space(space) => return Ok(Piece::Nothing),
            '.' if options.dot_all => Node::Class(class::all()),
            '.' => Node::Class(class::all_but_line_feed()),
            literal => self.literal(literal),
        };
        Ok(match node {
            Node::Assertion(_) | Node::MatchStart => Piece::Assertion(node),
            node => Piece::Node(node),
        })
    }

    fn literal(&self, character: char) -> Node {
        if self.is_case_insensitive() {
            class::both_cases(character).map_or(Node::Literal(character), Node::Class)
        } else {
            Node::Literal(character)
        }
    }

    /// Parses the text between `\Q` and `\E`.
    fn quoted(&mut self, nodes: &mut Vec<Node>) -> Result<Piece, ParseError> {
        let mut last = None;
        while self.characters.peek().is_some() && !self.characters.take(r"\E") {
            if let Some(character) = self.characters.next() {
                nodes.extend(last.replace(self.literal(character)));
            }
        }
        Ok(last.map_or(Piece::Nothing, Piece::Node))
    }

    /// Parses the bounds of a quantifier that begins with `character`, which is already skipped.
    /// Returns `None` if it does not begin a quantifier: braces with another content are literals.
    fn quantifier(&mut self, character: char) -> Result<Option<(u32, Option<u32>)>, ParseError> {
        Ok(Some(match character {
            '*' => (0, None),
            '+' => (1, None),
            '?' => (0, Some(1)),
            '{' => return self.braces(),
            _ => return Ok(None),
        }))
    }

    /// Parses `{2}`, `{2,}` or `{2,3}` after the opening brace.
    fn braces(&mut self) -> Result<Option<(u32, Option<u32>)>, ParseError> {
        let rest = self.characters.rest();
        let inner: String = rest.iter().take_while(|one| **one != '}').collect();
        let is_closed = inner.len() < rest.len();
        let (low, high) = match inner.split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (inner.as_str(), None),
        };
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
        let has_high = high.is_none_or(|high| high.is_empty() || is_number(high));
        if !is_closed || !is_number(low) || !has_high {
            return Ok(None);
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number <= REPETITIONS_MAX => Ok(number),
            _ => Err(ParseError::new("number too big in {} quantifier")),
        };
        let least = number(low)?;
        let most = match high {
            None => Some(least),
            Some("") => None,
            Some(high) => Some(number(high)?),
        };
        if most.is_some_and(|most| most < least) {
            return Err(ParseError::new("numbers out of order in {} quantifier"));
        }
        self.characters.skip(inner.len() + 1);
        Ok(Some((least, most)))
    }

    fn repetition(&mut self, node: Node, least: u32, most: Option<u32>) -> Node {
        if self.scope.options.extended {
            self.skip_spaces();
        }
        let greed = if self.characters.take("+") {
            Greed::Possessive
        } else if self.characters.take("?") != self.scope.is_ungreedy {
            Greed::Fewest
        } else {
            Greed::Most
        };
        Node::Repetition(Repetition {
            node: Box::new(node),
            least,
            most,
            greed,
        })
    }

    /// Skips the spaces and comments of option `x`.
    fn skip_spaces(&mut self) {
        while let Some(one) = self
            .characters
            .next_if(|one| one == '#' || is_pattern_space(one))
        {
            if one == '#' {
                self.characters.skip_line();
            }
        }
    }

    fn escape(&mut self) -> Result<Node, ParseError> {
        let character = self.characters.next();
        let character = character.ok_or_else(|| ParseError::new("\\ at end of pattern"))?;
        Ok(match character {
            'G' => Node::Assertion(Assertion::SearchStart),
            'b' | 'B' => Node::Assertion(self.word_boundary(character == 'B')),
            'A' => Node::Assertion(Assertion::TextStart),
            'z' => Node::Assertion(Assertion::TextEnd),
            'Z' => Node::Assertion(Assertion::TextEndOrFinalNewline),
            'C' => {
                // `\C` matches one byte, which may be a part of a character.
                let message = r"using \C is disabled in this PCRE2 library";
                return Err(ParseError::new(message));
            }
            'K' if self.look_arounds == 0 => Node::MatchStart,
            'K' => return Err(ParseError::new(MATCH_START_IN_LOOK_AROUND)),
            'R' => line_end()?,
            'N' if self.is_any_but_line_feed()? => Node::Class(class::all_but_line_feed()),
            'X' => grapheme()?,
            'g' => self.g_reference()?,
            'k' => self.k_reference()?,
            '1'..='9' => self.digits(character)?,
            other => match self.escapes().member(other)? {
                Member::Character(literal) => self.literal(literal),
                Member::Set(set) => Node::Class(class::parse(&format!("[{set}]"))?),
            },
        })
    }

    /// Returns `true` if `\N` means any character but a line feed: braces after it are a
    /// quantifier, not the name of a character.
    fn is_any_but_line_feed(&mut self) -> Result<bool, ParseError> {
        if self.characters.peek() != Some('{') {
            return Ok(true);
        }
        let before = self.characters.position();
        self.characters.skip(1);
        let is_quantifier = self.braces()?.is_some();
        self.characters.go_to(before);
        Ok(is_quantifier)
    }
}

/// Returns `true` for the characters that option `x` ignores: white space, and two that control the
/// direction of text.
fn is_pattern_space(one: char) -> bool {
    one.is_ascii_whitespace()
        || matches!(
            one,
            '\u{B}' | '\u{85}' | '\u{200E}' | '\u{200F}' | '\u{2028}' | '\u{2029}'
        )
}

/// Returns the pattern of `\R`.
fn line_end() -> Result<Node, ParseError> {
    let pair = Node::Concatenation(vec![Node::Literal('\r'), Node::Literal('\n')]);
    let single = class::parse(r"[\x0A-\x0D\x{85}\x{2028}\x{2029}]")?;
    let branches = Node::Alternation(vec![pair, Node::Class(single)]);
    Ok(Node::Atomic(Box::new(branches)))
}

/// Returns the pattern of `\X`: a character and the marks after it, or a line end of two
/// characters.
fn grapheme() -> Result<Node, ParseError> {
    let pair = Node::Concatenation(vec![Node::Literal('\r'), Node::Literal('\n')]);
    let marks = |least| -> Result<Node, ParseError> {
        Ok(Node::Repetition(Repetition {
            node: Box::new(Node::Class(class::parse(r"[\p{M}]")?)),
            least,
            most: None,
            greed: Greed::Most,
        }))
    };
    let first = Node::Class(class::parse(r"[\P{M}]")?);
    let branches = vec![pair, Node::Concatenation(vec![first, marks(0)?]), marks(1)?];
    Ok(Node::Atomic(Box::new(Node::Alternation(branches))))
}
