//! Patterns in the form that the linear engine takes.

use regex_syntax::hir::{Capture, Class, Dot, Hir, Look, Repetition as HirRepetition};

use crate::syntax::{Assertion, Greed, Node, Repetition, Word};

/// A pattern for the linear engine, and what it cannot say of it.
pub(crate) struct Translation {
    pub(crate) hir: Hir,
    /// Conditions were left out: every match of the pattern is a match of `hir`, and begins at the
    /// same position, but not the reverse.
    pub(crate) is_wider: bool,
    /// Matches begin at the same positions, but have other ends or groups.
    pub(crate) moves_positions: bool,
}

/// Translates a pattern, with or without its groups.
pub(crate) fn translate(node: &Node, has_groups: bool) -> Translation {
    let mut translator = Translator {
        has_groups,
        is_wider: false,
        moves_positions: false,
    };
    Translation {
        hir: translator.node(node, true),
        is_wider: translator.is_wider,
        moves_positions: translator.moves_positions,
    }
}

struct Translator {
    has_groups: bool,
    is_wider: bool,
    moves_positions: bool,
}

impl Translator {
    /// `is_last`: nothing of the pattern follows the node.
    fn node(&mut self, node: &Node, is_last: bool) -> Hir {
        match node {
            Node::Empty => Hir::empty(),
            Node::Literal(character) => {
                Hir::literal(character.to_string().into_bytes().into_boxed_slice())
            }
            Node::Class(class) => Hir::class(Class::Unicode(class.clone())),
            Node::Assertion(assertion) => self.assertion(assertion, is_last),
            Node::Group { number, node } => {
                let sub = self.node(node, is_last);
                match u32::try_from(*number) {
                    Ok(index) if self.has_groups => Hir::capture(Capture {
                        index,
                        name: None,
                        sub: Box::new(sub),
                    }),
                    _ => sub,
                }
            }
            Node::Concatenation(nodes) => {
                let last = nodes.len().saturating_sub(1);
                let parts = nodes.iter().enumerate();
                let parts = parts.map(|(place, node)| self.node(node, is_last && place == last));
                Hir::concat(parts.collect())
            }
            Node::Alternation(nodes) => {
                let branches = nodes.iter().map(|node| self.node(node, is_last));
                Hir::alternation(branches.collect())
            }
            Node::Repetition(repetition) => self.repetition(repetition, is_last),
            Node::Atomic(node) => {
                self.is_wider = true;
                self.node(node, false)
            }
            Node::LookAround { .. } => self.leave_out(),
            Node::BackReference { .. } => {
                self.is_wider = true;
                Hir::repetition(HirRepetition {
                    min: 0,
                    max: None,
                    greedy: true,
                    sub: Box::new(Hir::dot(Dot::AnyChar)),
                })
            }
            Node::MatchStart => {
                self.moves_positions = true;
                Hir::empty()
            }
        }
    }

    fn leave_out(&mut self) -> Hir {
        self.is_wider = true;
        Hir::empty()
    }

    fn assertion(&mut self, assertion: &Assertion, is_last: bool) -> Hir {
        match assertion {
            Assertion::TextStart => Hir::look(Look::Start),
            Assertion::TextEnd => Hir::look(Look::End),
            Assertion::LineStart => Hir::look(Look::StartLF),
            Assertion::LineEnd => Hir::look(Look::EndLF),
            Assertion::TextEndOrFinalNewline if is_last => {
                self.moves_positions = true;
                let line_feed = Hir::repetition(HirRepetition {
                    min: 0,
                    max: Some(1),
                    greedy: true,
                    sub: Box::new(Hir::literal(*b"\n")),
                });
                Hir::concat(vec![line_feed, Hir::look(Look::End)])
            }
            Assertion::WordBoundary {
                is_negated: false,
                word: Word::Ascii,
            } => Hir::look(Look::WordAscii),
            // `\B` in ASCII would match between the bytes of one character.
            Assertion::TextEndOrFinalNewline | Assertion::WordBoundary { .. } => self.leave_out(),
        }
    }

    fn repetition(&mut self, repetition: &Repetition, is_last: bool) -> Hir {
        self.is_wider |= repetition.greed == Greed::Possessive;
        let is_last = is_last && repetition.most == Some(1);
        Hir::repetition(HirRepetition {
            min: repetition.least,
            max: repetition.most,
            greedy: repetition.greed != Greed::Fewest,
            sub: Box::new(self.node(&repetition.node, is_last)),
        })
    }
}
