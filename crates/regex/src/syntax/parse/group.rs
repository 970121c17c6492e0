//! Parses groups and the options that they set.

use super::{Node, Options, ParseError, Parser, Piece, Scope};

/// The most levels of nested groups, as in PCRE2. The limit bounds the recursion of the functions
/// that walk the tree of a pattern.
const NESTED_GROUPS_MAX: usize = 250;

const MISSING_PARENTHESIS: &str = "missing closing parenthesis";

impl Parser {
    /// Parses a group, a comment or options after the opening parenthesis.
    pub(super) fn group(&mut self) -> Result<Piece, ParseError> {
        let outer = self.scope;
        let kind = if !self.characters.take("?") {
            if self.characters.peek() == Some('*') {
                return Err(ParseError::new("verbs are not supported"));
            }
            if self.scope.captures_names_only {
                GroupKind::Plain
            } else {
                self.groups += 1;
                GroupKind::Capturing(self.groups)
            }
        } else if self.characters.take("#") {
            let comment = self.characters.until(')');
            comment.map_err(|_| ParseError::new("missing ) after (?# comment"))?;
            return Ok(Piece::Nothing);
        } else if self.characters.take("P=") {
            let name = self.name(')')?;
            return Ok(Piece::Node(self.named_reference(&name)));
        } else if let Some(number) = self.named_group()? {
            GroupKind::Capturing(number)
        } else if let Some(kind) = self.look_around() {
            kind
        } else if self.flags()? {
            GroupKind::Plain
        } else {
            return Ok(Piece::Options);
        };
        self.depth += 1;
        if self.depth > NESTED_GROUPS_MAX {
            return Err(ParseError::new("parentheses are too deeply nested"));
        }
        let look_arounds = usize::from(matches!(kind, GroupKind::LookAround { .. }));
        self.look_arounds += look_arounds;
        let node = self.alternation()?;
        self.look_arounds -= look_arounds;
        if !self.characters.take(")") {
            return Err(ParseError::new(MISSING_PARENTHESIS));
        }
        self.depth -= 1;
        self.scope = outer;
        Ok(Piece::Node(kind.enclose(node)))
    }

    /// Parses `P<name>`, `<name>` or `'name'` after `(?`. Returns the number of the group; `None`
    /// if it is not a named group.
    fn named_group(&mut self) -> Result<Option<usize>, ParseError> {
        let is_look_behind = matches!(self.characters.peek_at(1), Some('=' | '!'));
        let end = if self.characters.take("P<") || (!is_look_behind && self.characters.take("<")) {
            '>'
        } else if self.characters.take("'") {
            '\''
        } else {
            return Ok(None);
        };
        let name = self.name(end)?;
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

    /// Parses the rest of `(?i)`, `(?im-sx)`, `(?i:`, `(?:` or `(?^i)` after the question mark.
    /// Returns `true` if a group begins.
    fn flags(&mut self) -> Result<bool, ParseError> {
        let has_caret = self.characters.take("^");
        if has_caret {
            self.scope = Scope {
                is_ungreedy: self.scope.is_ungreedy,
                ..Scope::new(Options::default())
            };
        }
        let mut on = true;
        loop {
            let Scope {
                options,
                is_ungreedy,
                ignores_class_spaces,
                captures_names_only,
            } = &mut self.scope;
            let flag = self.characters.next();
            match flag.ok_or_else(|| ParseError::new(MISSING_PARENTHESIS))? {
                '-' if has_caret || !on => {
                    return Err(ParseError::new("invalid hyphen in option setting"));
                }
                '-' => on = false,
                'i' => options.case_insensitive = on,
                'm' => options.multiline = on,
                'n' => *captures_names_only = on,
                's' => options.dot_all = on,
                'x' => {
                    options.extended = on;
                    *ignores_class_spaces = on && self.characters.take("x");
                }
                'U' => *is_ungreedy = on,
                ')' => return Ok(false),
                ':' => return Ok(true),
                _ => {
                    return Err(ParseError::new("unrecognized character after (? or (?-"));
                }
            }
        }
    }
}

/// The kind of a group.
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
