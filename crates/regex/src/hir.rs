//! Translates a parsed pattern into the tree from which the linear engine builds its automata
//! (`Hir` of `regex-syntax`).

use regex_syntax::hir::{Capture, Class, Dot, Hir, Look, Repetition as HirRepetition};

use crate::program::length;
use crate::syntax::{Assertion, Greed, Node, Repetition, Word};

/// A pattern for the linear engine, and how its matches differ from those of the original.
pub(crate) struct Translation {
    pub(crate) hir: Hir,
    /// `true` if conditions of the pattern were left out. At each position where the pattern
    /// matches, `hir` matches too, but `hir` may also match elsewhere.
    pub(crate) is_wider: bool,
    /// `true` if matches of `hir` begin at the same positions, but may have other ends or groups.
    pub(crate) moves_positions: bool,
}

/// Translates a pattern, and keeps its capturing groups if `has_groups`.
pub(crate) fn translate(node: &Node, has_groups: bool) -> Translation {
    let mut translator = Translator {
        has_groups,
        is_wider: false,
        moves_positions: false,
    };
    Translation {
        hir: translator.node(node, NodeContext::WHOLE),
        is_wider: translator.is_wider,
        moves_positions: translator.moves_positions,
    }
}

/// What follows a node in its pattern.
#[derive(Clone, Copy)]
struct NodeContext {
    /// `true` if the pattern ends with the node.
    is_last: bool,
    /// `true` if the rest of the pattern matches at least one character.
    is_followed: bool,
}

impl NodeContext {
    const WHOLE: NodeContext = NodeContext {
        is_last: true,
        is_followed: false,
    };

    /// Returns the context of a node that other parts of the pattern may follow.
    fn not_last(self) -> NodeContext {
        NodeContext {
            is_last: false,
            ..self
        }
    }
}

struct Translator {
    has_groups: bool,
    is_wider: bool,
    moves_positions: bool,
}

impl Translator {
    fn node(&mut self, node: &Node, context: NodeContext) -> Hir {
        match node {
            Node::Empty => Hir::empty(),
            Node::Literal(character) => {
                Hir::literal(character.to_string().into_bytes().into_boxed_slice())
            }
            Node::Class(class) => Hir::class(Class::Unicode(class.clone())),
            Node::Assertion(assertion) => self.assertion(assertion, context),
            Node::Group { number, node } => {
                let sub = self.node(node, context);
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
                let mut is_followed = vec![context.is_followed; nodes.len()];
                let mut later = context.is_followed;
                for (node, is_followed) in nodes.iter().zip(&mut is_followed).rev() {
                    *is_followed = later;
                    later |= length(node).least > 0;
                }
                let last = nodes.len().saturating_sub(1);
                let parts = nodes.iter().zip(is_followed).enumerate();
                let parts = parts.map(|(number, (node, is_followed))| {
                    let is_last = context.is_last && number == last;
                    let context = NodeContext {
                        is_last,
                        is_followed,
                    };
                    self.node(node, context)
                });
                Hir::concat(parts.collect())
            }
            Node::Alternation(nodes) => {
                let branches = nodes.iter().map(|node| self.node(node, context));
                Hir::alternation(branches.collect())
            }
            Node::Repetition(repetition) => self.repetition(repetition, context),
            Node::Atomic(node) => {
                self.is_wider = true;
                self.node(node, context.not_last())
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

    /// Returns the empty pattern in place of a condition that the linear engine does not have.
    fn leave_out(&mut self) -> Hir {
        self.is_wider = true;
        Hir::empty()
    }

    fn assertion(&mut self, assertion: &Assertion, context: NodeContext) -> Hir {
        match assertion {
            Assertion::TextStart => Hir::look(Look::Start),
            Assertion::TextEnd => Hir::look(Look::End),
            Assertion::LineStart => {
                // After a line feed that ends the text, the automaton sees the start of a line and
                // PCRE does not. A character that must follow excludes that position.
                self.is_wider |= !context.is_followed;
                Hir::look(Look::StartLF)
            }
            Assertion::LineEnd => Hir::look(Look::EndLF),
            Assertion::TextEndOrFinalNewline if context.is_last => {
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
            // The ASCII `\B` of the automaton could match between the bytes of one character.
            Assertion::TextEndOrFinalNewline
            | Assertion::WordBoundary { .. }
            | Assertion::SearchStart => self.leave_out(),
        }
    }

    fn repetition(&mut self, repetition: &Repetition, context: NodeContext) -> Hir {
        self.is_wider |= repetition.greed == Greed::Possessive;
        let (is_single, is_never) = (repetition.most == Some(1), repetition.most == Some(0));
        // If an iteration may match the empty text, the automaton finds other ends and groups than
        // PCRE does. If there are no iterations, it drops the groups inside.
        let may_be_empty = length(&repetition.node).least == 0;
        self.moves_positions |= is_never || (may_be_empty && !is_single);
        let context = if is_single {
            context
        } else {
            context.not_last()
        };
        Hir::repetition(HirRepetition {
            min: repetition.least,
            max: repetition.most,
            greedy: repetition.greed != Greed::Fewest,
            sub: Box::new(self.node(&repetition.node, context)),
        })
    }
}
