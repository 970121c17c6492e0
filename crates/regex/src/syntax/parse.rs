//! The parser: one pass over the characters of a pattern.

use std::collections::HashMap;

use super::characters::Characters;
use super::class::{self, ClassParser, Member};
use super::{Assertion, Greed, Node, Options, Pattern, Repetition, Word};
use crate::ParseError;

/// How deep groups may be nested, as in PCRE2. Bounds the recursion of everything that walks a tree.
const NESTED_GROUPS_MAX: usize = 250;

/// The largest number in a quantifier, as in PCRE2.
const REPETITIONS_MAX: u32 = 65_535;

/// Verbs at the front of a pattern that ask for what is so anyway (UTF-8, lines that end with a line
/// feed, `\R` for every line end) or for less optimisation.
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

/// Parses a pattern. Fails with a sentence that says what is wrong.
pub(crate) fn parse(pattern: &str, options: Options) -> Result<Pattern, ParseError> {
    let mut parser = Parser::new(pattern, options, Names::default());
    let mut node = parser.pattern()?;
    if parser.has_unknown_names {
        // A reference may precede its group: the second pass knows all names.
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

/// The options that a group may change and that end with it.
#[derive(Clone, Copy)]
struct Scope {
    options: Options,
    /// `(?U)`: quantifiers are lazy, and greedy with a question mark.
    is_ungreedy: bool,
}

type Names = HashMap<String, usize>;

struct Parser {
    characters: Characters,
    scope: Scope,
    depth: usize,
    /// `(*UCP)`: classes and word boundaries follow Unicode.
    is_unicode: bool,
    groups: usize,
    highest_reference: usize,
    /// The number of each named group.
    names: Names,
    /// The names that groups of this pass have.
    named: Names,
    has_unknown_names: bool,
}

/// What a piece of the pattern adds to a branch.
enum Piece {
    Node(Node),
    /// A comment, or options for the rest of the group.
    Nothing,
}

impl Parser {
    fn new(pattern: &str, options: Options, names: Names) -> Parser {
        let scope = Scope {
            options,
            is_ungreedy: false,
        };
        Parser {
            characters: Characters::new(pattern),
            scope,
            depth: 0,
            is_unicode: false,
            groups: 0,
            highest_reference: 0,
            names,
            named: Names::default(),
            has_unknown_names: false,
        }
    }

    fn class_parser(&mut self) -> ClassParser<'_> {
        ClassParser {
            characters: &mut self.characters,
            is_unicode: self.is_unicode,
        }
    }

    fn is_case_insensitive(&self) -> bool {
        self.scope.options.case_insensitive
    }

    fn pattern(&mut self) -> Result<Node, ParseError> {
        self.verbs();
        let node = self.alternation()?;
        if self.characters.peek().is_some() {
            return Err(ParseError::new("unmatched parentheses"));
        }
        self.names.extend(self.named.drain());
        Ok(node)
    }

    /// Skips `(*UCP)` and other verbs at the front.
    fn verbs(&mut self) {
        loop {
            if self.characters.take("(*UCP)") {
                self.is_unicode = true;
            } else if !NEUTRAL_VERBS.iter().any(|verb| self.characters.take(verb)) {
                return;
            }
        }
    }

    /// Branches up to a closing parenthesis or the end.
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
                Piece::Nothing => {}
            }
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.pop().unwrap_or(Node::Empty),
            _ => Node::Concatenation(nodes),
        })
    }

    /// What `character`, already skipped, begins. Quoted text goes to `nodes` but for its last
    /// character.
    fn piece(&mut self, character: char, nodes: &mut Vec<Node>) -> Result<Piece, ParseError> {
        let options = self.scope.options;
        Ok(Piece::Node(match character {
            '\\' if self.characters.take("Q") => return self.quoted(nodes),
            '\\' if self.characters.take("E") => return Ok(Piece::Nothing),
            '\\' => self.escape()?,
            '[' => Node::Class(self.class_parser().class(options.case_insensitive)?),
            '(' => return self.group(),
            '^' if options.multiline => Node::Assertion(Assertion::LineStart),
            '^' => Node::Assertion(Assertion::TextStart),
            '$' if options.multiline => Node::Assertion(Assertion::LineEnd),
            '$' => Node::Assertion(Assertion::TextEndOrFinalNewline),
            '#' if options.extended => {
                while self.characters.next().is_some_and(|one| one != '\n') {}
                return Ok(Piece::Nothing);
            }
            space if options.extended && space.is_ascii_whitespace() => return Ok(Piece::Nothing),
            '.' if options.dot_all => Node::Class(class::all()),
            '.' => Node::Class(class::all_but_line_feed()),
            literal => self.literal(literal),
        }))
    }

    fn literal(&self, character: char) -> Node {
        if self.is_case_insensitive() {
            class::both_cases(character).map_or(Node::Literal(character), Node::Class)
        } else {
            Node::Literal(character)
        }
    }

    /// `\Q…\E`
    fn quoted(&mut self, nodes: &mut Vec<Node>) -> Result<Piece, ParseError> {
        let mut last = None;
        while self.characters.peek().is_some() && !self.characters.take(r"\E") {
            if let Some(character) = self.characters.next() {
                nodes.extend(last.replace(self.literal(character)));
            }
        }
        Ok(last.map_or(Piece::Nothing, Piece::Node))
    }

    /// The bounds of a quantifier, if `character`, already skipped, begins one. Other braces stand
    /// for themselves.
    fn quantifier(&mut self, character: char) -> Result<Option<(u32, Option<u32>)>, ParseError> {
        Ok(Some(match character {
            '*' => (0, None),
            '+' => (1, None),
            '?' => (0, Some(1)),
            '{' => return self.braces(),
            _ => return Ok(None),
        }))
    }

    /// `{2}`, `{2,}`, `{2,3}`
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

    fn group(&mut self) -> Result<Piece, ParseError> {
        let outer = self.scope;
        let kind = if !self.characters.take("?") {
            if self.characters.peek() == Some('*') {
                return Err(ParseError::new("verbs are not supported"));
            }
            self.groups += 1;
            GroupKind::Capturing(self.groups)
        } else if self.characters.take("#") {
            self.characters.until(')')?;
            return Ok(Piece::Nothing);
        } else if self.characters.take("P=") {
            let name = self.characters.until(')')?;
            return Ok(Piece::Node(self.named_reference(&name)));
        } else if let Some(number) = self.named_group()? {
            GroupKind::Capturing(number)
        } else if let Some(kind) = self.look_around() {
            kind
        } else if self.flags()? {
            GroupKind::Plain
        } else {
            return Ok(Piece::Nothing);
        };
        self.depth += 1;
        if self.depth > NESTED_GROUPS_MAX {
            return Err(ParseError::new("parentheses are too deeply nested"));
        }
        let node = self.alternation()?;
        if !self.characters.take(")") {
            return Err(ParseError::new("missing closing parenthesis"));
        }
        self.depth -= 1;
        self.scope = outer;
        Ok(Piece::Node(kind.enclose(node)))
    }

    /// `(?P<name>`, `(?<name>`, `(?'name'`: returns the group's number.
    fn named_group(&mut self) -> Result<Option<usize>, ParseError> {
        let is_look_behind = matches!(self.characters.peek_at(1), Some('=' | '!'));
        let end = if self.characters.take("P<") || (!is_look_behind && self.characters.take("<")) {
            '>'
        } else if self.characters.take("'") {
            '\''
        } else {
            return Ok(None);
        };
        let name = self.characters.until(end)?;
        let is_word = |one: char| one == '_' || one.is_alphanumeric();
        let starts_well = name.chars().next().is_some_and(|one| !one.is_numeric());
        if !starts_well || !name.chars().all(is_word) {
            let message =
                "subpattern name must start with a non-digit and consist of word characters";
            return Err(ParseError::new(message));
        }
        self.groups += 1;
        if self.named.insert(name, self.groups).is_some() {
            let message = "two named subpatterns have the same name (PCRE2_DUPNAMES not set)";
            return Err(ParseError::new(message));
        }
        Ok(Some(self.groups))
    }

    fn look_around(&mut self) -> Option<GroupKind> {
        const SIGNS: [(&str, GroupKind); 5] = [
            ("=", GroupKind::look(false, false)),
            ("!", GroupKind::look(false, true)),
            ("<=", GroupKind::look(true, false)),
            ("<!", GroupKind::look(true, true)),
            (">", GroupKind::Atomic),
        ];
        let found = SIGNS
            .into_iter()
            .find(|(sign, _)| self.characters.take(sign));
        found.map(|(_, kind)| kind)
    }

    /// `(?i)`, `(?im-sx)`, `(?i:`, `(?:`. Returns `true` if a group begins.
    fn flags(&mut self) -> Result<bool, ParseError> {
        let mut on = true;
        loop {
            let flag = self.characters.next();
            let options = &mut self.scope.options;
            match flag {
                Some('-') => on = false,
                Some('i') => options.case_insensitive = on,
                Some('m') => options.multiline = on,
                Some('s') => options.dot_all = on,
                Some('x') => options.extended = on,
                Some('U') => self.scope.is_ungreedy = on,
                Some(')') => return Ok(false),
                Some(':') => return Ok(true),
                Some(other) => {
                    let message = format!("unrecognized character '{other}' after (?");
                    return Err(ParseError::new(message));
                }
                None => return Err(ParseError::new("missing closing parenthesis")),
            }
        }
    }

    fn reference(&mut self, group: usize) -> Node {
        self.highest_reference = self.highest_reference.max(group);
        Node::BackReference {
            group,
            case_insensitive: self.is_case_insensitive(),
        }
    }

    fn named_reference(&mut self, name: &str) -> Node {
        let known = self
            .named
            .get(name)
            .or_else(|| self.names.get(name))
            .copied();
        self.has_unknown_names |= known.is_none();
        self.reference(known.unwrap_or(0))
    }

    fn escape(&mut self) -> Result<Node, ParseError> {
        let character = self
            .characters
            .next()
            .ok_or_else(|| ParseError::new("\\ at end of pattern"))?;
        let word = match self.is_unicode {
            true => Word::Unicode,
            false => Word::Ascii,
        };
        Ok(match character {
            'G' => Node::Assertion(Assertion::SearchStart),
            'b' | 'B' => Node::Assertion(Assertion::WordBoundary {
                is_negated: character == 'B',
                word,
            }),
            'A' => Node::Assertion(Assertion::TextStart),
            'z' => Node::Assertion(Assertion::TextEnd),
            'Z' => Node::Assertion(Assertion::TextEndOrFinalNewline),
            'K' => Node::MatchStart,
            'R' => line_end()?,
            'N' => Node::Class(class::all_but_line_feed()),
            'X' => grapheme()?,
            'g' => self.g_reference()?,
            'k' => self.k_reference()?,
            '1'..='9' => self.digits(character),
            other => match self.class_parser().escaped_member(other)? {
                Member::Character(literal) => self.literal(literal),
                Member::Set(set) => Node::Class(class::parse(&format!("[{set}]"), false)?),
            },
        })
    }

    fn k_reference(&mut self) -> Result<Node, ParseError> {
        let end = match self.characters.next() {
            Some('<') => '>',
            Some('{') => '}',
            Some('\'') => '\'',
            _ => return Err(ParseError::new("\\k is not followed by a name")),
        };
        let name = self.characters.until(end)?;
        Ok(self.named_reference(&name))
    }

    /// `\g1`, `\g{1}`, `\g{-1}`, `\g{name}`
    fn g_reference(&mut self) -> Result<Node, ParseError> {
        let text = if self.characters.take("{") {
            self.characters.until('}')?
        } else {
            let mut text = String::new();
            let is_part = |one: char| one == '-' || one.is_ascii_digit();
            while let Some(one) = self.characters.next_if(is_part) {
                text.push(one);
            }
            text
        };
        match text.parse::<i64>() {
            Ok(0) => Err(ParseError::new("a numbered reference must not be zero")),
            Ok(back) if back < 0 => match usize::try_from(self.groups as i64 + 1 + back) {
                Ok(group) if group > 0 => Ok(self.reference(group)),
                _ => Err(ParseError::new("reference to non-existent subpattern")),
            },
            Ok(group) => Ok(self.reference(usize::try_from(group).unwrap_or(usize::MAX))),
            Err(_) => Ok(self.named_reference(&text)),
        }
    }

    /// A back-reference; from 10 on an octal number if there are not so many groups before.
    fn digits(&mut self, first: char) -> Node {
        let mut text = String::from(first);
        while let Some(digit) = self.characters.next_if(|one| one.is_ascii_digit()) {
            text.push(digit);
        }
        // A number too large for the machine is no group's.
        let number = text.parse().unwrap_or(usize::MAX);
        if number < 10 || number <= self.groups {
            return self.reference(number);
        }
        let is_octal = |one: &char| ('0'..'8').contains(one);
        let octal: String = text.chars().take(3).take_while(is_octal).collect();
        self.characters.go_back(text.len() - octal.len());
        let code = u32::from_str_radix(&octal, 8).ok().and_then(char::from_u32);
        code.map_or(Node::Empty, |literal| self.literal(literal))
    }
}

/// `\R`
fn line_end() -> Result<Node, ParseError> {
    let pair = Node::Concatenation(vec![Node::Literal('\r'), Node::Literal('\n')]);
    let single = class::parse(r"[\x0A-\x0D\x{85}\x{2028}\x{2029}]", false)?;
    let branches = Node::Alternation(vec![pair, Node::Class(single)]);
    Ok(Node::Atomic(Box::new(branches)))
}

/// `\X`: a character and the marks behind it, or a line end of two characters.
fn grapheme() -> Result<Node, ParseError> {
    let pair = Node::Concatenation(vec![Node::Literal('\r'), Node::Literal('\n')]);
    let marks = |least| -> Result<Node, ParseError> {
        Ok(Node::Repetition(Repetition {
            node: Box::new(Node::Class(class::parse(r"[\p{M}]", false)?)),
            least,
            most: None,
            greed: Greed::Most,
        }))
    };
    let first = Node::Class(class::parse(r"[\P{M}]", false)?);
    let branches = vec![pair, Node::Concatenation(vec![first, marks(0)?]), marks(1)?];
    Ok(Node::Atomic(Box::new(Node::Alternation(branches))))
}

/// What a parenthesis opens.
#[derive(Clone, Copy)]
enum GroupKind {
    Plain,
    Capturing(usize),
    Atomic,
    LookAround { is_behind: bool, is_negated: bool },
}

impl GroupKind {
    const fn look(is_behind: bool, is_negated: bool) -> GroupKind {
        GroupKind::LookAround {
            is_behind,
            is_negated,
        }
    }

    fn enclose(self, node: Node) -> Node {
        let node = Box::new(node);
        match self {
            GroupKind::Plain => *node,
            GroupKind::Capturing(number) => Node::Group { number, node },
            GroupKind::Atomic => Node::Atomic(node),
            GroupKind::LookAround {
                is_behind,
                is_negated,
            } => Node::LookAround {
                is_behind,
                is_negated,
                node,
            },
        }
    }
}
