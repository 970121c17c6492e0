//! Compiles patterns into instructions for the backtracking engine.

use regex_syntax::hir::ClassUnicode;

use crate::ParseError;
use crate::syntax::{Assertion, Greed, Node, Repetition, contains};

/// The greatest length of a look-behind in characters, as in PCRE2.
const LOOK_BEHIND_MAX: u32 = 255;

/// The most instructions. PCRE2 has a similar limit on the bytes of a compiled pattern.
const INSTRUCTIONS_MAX: usize = 1 << 18;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) instructions: Vec<Instruction>,
    /// The number of capturing groups, including the whole match. The start of group `n` is in slot
    /// `2n`, its end in slot `2n + 1`.
    pub(crate) groups: usize,
    /// The number of slots. They hold positions of groups, counters, and other values that
    /// backtracking restores.
    pub(crate) slots: usize,
}

/// The number of an instruction.
pub(crate) type Address = u32;

/// The number of a value that backtracking restores.
pub(crate) type Slot = u32;

#[derive(Debug)]
pub(crate) enum Instruction {
    Text(Box<str>),
    Set(CharacterSet),
    Assert(Assertion),
    /// Continues at the first address. After a failure, continues at the second.
    Split(Address, Address),
    Jump(Address),
    /// Repeats one set of characters, in a single instruction.
    Span(Span),
    /// Stores the position in the slot.
    SavePosition(Slot),
    /// Sets the start and the end of a group. The slot `start` has its start, and the group ends at
    /// the current position.
    CloseGroup {
        group: u32,
        start: Slot,
    },
    /// Sets a counter to zero.
    ResetCounter(Slot),
    /// Begins an iteration of a loop, or leaves the loop.
    Loop(Loop),
    /// Adds one to a counter.
    CountIteration(Slot),
    /// Ends an iteration that began at the position in the slot `start`. Leaves the loop if the
    /// iteration matched nothing and the loop has enough iterations; otherwise continues at `head`.
    EndIteration {
        start: Slot,
        head: Address,
    },
    /// Stores the height of the stack of alternatives in the slot.
    SaveHeight(Slot),
    /// Drops the alternatives above the height in the slot.
    Cut(Slot),
    /// Continues at the position in the slot.
    RestorePosition(Slot),
    /// Drops the alternatives above the height in the slot, then fails.
    FailAbove(Slot),
    /// Moves back by `least` to `most` characters. Tries the smallest number first.
    StepBack {
        least: u32,
        most: u32,
    },
    /// Fails unless the position is the one in the slot.
    RequirePosition(Slot),
    BackReference {
        group: u32,
        case_insensitive: bool,
    },
    Match,
}

/// The repetition of a set of characters, such as `a*` or `[b-d]{2,5}?`.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) set: CharacterSet,
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) greed: Greed,
}

/// The head of a loop.
#[derive(Debug)]
pub(crate) struct Loop {
    /// The slot with the number of iterations so far. `None` if any number is allowed.
    pub(crate) counter: Option<Slot>,
    pub(crate) least: u32,
    pub(crate) most: u32,
    pub(crate) is_lazy: bool,
    /// The first instruction after the loop.
    pub(crate) exit: Address,
}

/// A set of characters with a bitmap of its ASCII part.
#[derive(Debug)]
pub(crate) struct CharacterSet {
    ascii: u128,
    class: ClassUnicode,
}

impl CharacterSet {
    fn new(class: ClassUnicode) -> CharacterSet {
        let ascii = (0..128u8).filter(|byte| contains(&class, char::from(*byte)));
        CharacterSet {
            ascii: ascii.fold(0, |bits, byte| bits | 1 << byte),
            class,
        }
    }

    pub(crate) fn contains(&self, character: char) -> bool {
        match u32::from(character) {
            code @ 0..128 => self.ascii >> code & 1 == 1,
            _ => contains(&self.class, character),
        }
    }
}

impl Program {
    /// Returns about how many bytes the instructions take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ranges = self
            .instructions
            .iter()
            .map(|instruction| match instruction {
                Instruction::Set(set) | Instruction::Span(Span { set, .. }) => {
                    set.class.ranges().len()
                }
                _ => 0,
            });
        self.instructions.len() * size_of::<Instruction>() + 8 * ranges.sum::<usize>()
    }

    /// Compiles a pattern that has `groups` capturing groups, without the whole match. Fails if a
    /// look-behind has no upper limit of its length or the program is too large.
    pub(crate) fn new(node: &Node, groups: usize) -> Result<Program, ParseError> {
        let groups = groups + 1;
        let mut compiler = Compiler {
            instructions: Vec::new(),
            slots: small(2 * groups)?,
        };
        compiler.node(node)?;
        compiler.push(Instruction::Match)?;
        Ok(Program {
            instructions: compiler.instructions,
            groups,
            slots: compiler.slots as usize,
        })
    }
}

/// Converts a number of instructions or slots. Fails if it exceeds [`INSTRUCTIONS_MAX`].
fn small(number: usize) -> Result<u32, ParseError> {
    match u32::try_from(number) {
        Ok(number) if number as usize <= INSTRUCTIONS_MAX => Ok(number),
        _ => Err(ParseError::new("regular expression is too large")),
    }
}

struct Compiler {
    instructions: Vec<Instruction>,
    slots: u32,
}

impl Compiler {
    fn push(&mut self, instruction: Instruction) -> Result<Address, ParseError> {
        let address = small(self.instructions.len())?;
        self.instructions.push(instruction);
        Ok(address)
    }

    fn next_address(&self) -> Result<Address, ParseError> {
        small(self.instructions.len())
    }

    fn new_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    fn node(&mut self, node: &Node) -> Result<(), ParseError> {
        match node {
            Node::Empty => {}
            Node::Literal(character) => {
                self.push(Instruction::Text(character.to_string().into()))?;
            }
            Node::Class(class) => {
                self.push(Instruction::Set(CharacterSet::new(class.clone())))?;
            }
            Node::Assertion(assertion) => {
                self.push(Instruction::Assert(assertion.clone()))?;
            }
            Node::Group { number, node } => {
                let start = self.new_slot();
                self.push(Instruction::SavePosition(start))?;
                self.node(node)?;
                let group = small(*number)?;
                self.push(Instruction::CloseGroup { group, start })?;
            }
            Node::Concatenation(nodes) => self.concatenation(nodes)?,
            Node::Alternation(branches) => self.alternation(branches, Compiler::node)?,
            Node::Repetition(repetition) => self.repetition(repetition)?,
            Node::Atomic(node) => self.atomic(|compiler| compiler.node(node))?,
            Node::LookAround {
                is_behind,
                is_negated,
                node,
            } => self.look_around(*is_behind, *is_negated, node)?,
            Node::BackReference {
                group,
                case_insensitive,
            } => {
                self.push(Instruction::BackReference {
                    group: small(*group)?,
                    case_insensitive: *case_insensitive,
                })?;
            }
            Node::MatchStart => {
                // Slot 0 is the start of the whole match.
                self.push(Instruction::SavePosition(0))?;
            }
        }
        Ok(())
    }

    /// Compiles nodes in order. Joins neighbouring literals to one instruction.
    fn concatenation(&mut self, nodes: &[Node]) -> Result<(), ParseError> {
        let mut text = String::new();
        for node in nodes {
            if let Node::Literal(character) = node {
                text.push(*character);
                continue;
            }
            self.text(&mut text)?;
            self.node(node)?;
        }
        self.text(&mut text)
    }

    fn text(&mut self, text: &mut String) -> Result<(), ParseError> {
        if !text.is_empty() {
            self.push(Instruction::Text(std::mem::take(text).into()))?;
        }
        Ok(())
    }

    fn alternation(
        &mut self,
        branches: &[Node],
        compile: impl Fn(&mut Compiler, &Node) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let Some((last, others)) = branches.split_last() else {
            return Ok(());
        };
        let mut jumps = Vec::new();
        for branch in others {
            let split = self.push(Instruction::Split(0, 0))?;
            compile(self, branch)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            let next = self.next_address()?;
            self.patch(split, Instruction::Split(split + 1, next));
        }
        compile(self, last)?;
        let end = self.next_address()?;
        for jump in jumps {
            self.patch(jump, Instruction::Jump(end));
        }
        Ok(())
    }

    /// Replaces an instruction that was pushed before its addresses were known.
    fn patch(&mut self, address: Address, instruction: Instruction) {
        if let Some(placeholder) = self.instructions.get_mut(address as usize) {
            *placeholder = instruction;
        }
    }

    fn repetition(&mut self, repetition: &Repetition) -> Result<(), ParseError> {
        let class = match &*repetition.node {
            Node::Class(class) => Some(class.clone()),
            Node::Literal(character) => Some(ClassUnicode::new([
                regex_syntax::hir::ClassUnicodeRange::new(*character, *character),
            ])),
            _ => None,
        };
        let most = repetition.most.unwrap_or(u32::MAX);
        if let Some(class) = class {
            self.push(Instruction::Span(Span {
                set: CharacterSet::new(class),
                least: repetition.least,
                most,
                greed: repetition.greed,
            }))?;
            return Ok(());
        }
        match repetition.greed {
            Greed::Possessive => self.atomic(|compiler| compiler.iterations(repetition, most)),
            Greed::Most | Greed::Fewest => self.iterations(repetition, most),
        }
    }

    /// Compiles a loop:
    ///
    /// ```text
    ///       ResetCounter     (only if the loop has a counter)
    /// head: Loop             (leaves to exit)
    ///       CountIteration   (only if the loop has a counter)
    ///       SavePosition
    ///       …                (the repeated node)
    ///       EndIteration     (continues at head)
    /// exit:
    /// ```
    fn iterations(&mut self, repetition: &Repetition, most: u32) -> Result<(), ParseError> {
        let start = self.new_slot();
        let is_counted = repetition.least > 0 || repetition.most.is_some();
        let counter = is_counted.then(|| self.new_slot());
        if let Some(counter) = counter {
            self.push(Instruction::ResetCounter(counter))?;
        }
        let head = self.push(Instruction::Jump(0))?;
        if let Some(counter) = counter {
            self.push(Instruction::CountIteration(counter))?;
        }
        self.push(Instruction::SavePosition(start))?;
        self.node(&repetition.node)?;
        self.push(Instruction::EndIteration { start, head })?;
        let exit = self.next_address()?;
        let head_instruction = Instruction::Loop(Loop {
            counter,
            least: repetition.least,
            most,
            is_lazy: repetition.greed == Greed::Fewest,
            exit,
        });
        self.patch(head, head_instruction);
        Ok(())
    }

    fn atomic(
        &mut self,
        compile: impl FnOnce(&mut Compiler) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        let height = self.new_slot();
        self.push(Instruction::SaveHeight(height))?;
        compile(self)?;
        self.push(Instruction::Cut(height))?;
        Ok(())
    }

    fn look_around(
        &mut self,
        is_behind: bool,
        is_negated: bool,
        node: &Node,
    ) -> Result<(), ParseError> {
        let position = self.new_slot();
        self.push(Instruction::SavePosition(position))?;
        let body = |compiler: &mut Compiler| {
            if is_behind {
                compiler.look_behind(node, position)
            } else {
                compiler.node(node)
            }
        };
        if !is_negated {
            self.atomic(body)?;
            self.push(Instruction::RestorePosition(position))?;
            return Ok(());
        }
        let height = self.new_slot();
        self.push(Instruction::SaveHeight(height))?;
        let split = self.push(Instruction::Split(0, 0))?;
        body(self)?;
        self.push(Instruction::FailAbove(height))?;
        let next = self.next_address()?;
        self.patch(split, Instruction::Split(split + 1, next));
        Ok(())
    }

    /// Compiles a look-behind that ends at the position in the slot `end`. The branches of an
    /// alternation may have different lengths.
    fn look_behind(&mut self, node: &Node, end: Slot) -> Result<(), ParseError> {
        let branch = |compiler: &mut Compiler, node: &Node| {
            let length = length(node);
            let Some(most) = length.most.filter(|most| *most <= LOOK_BEHIND_MAX) else {
                return Err(ParseError::new("lookbehind assertion is not fixed length"));
            };
            compiler.push(Instruction::StepBack {
                least: length.least,
                most,
            })?;
            compiler.node(node)?;
            compiler.push(Instruction::RequirePosition(end))?;
            Ok(())
        };
        match node {
            Node::Alternation(branches) => self.alternation(branches, branch),
            other => branch(self, other),
        }
    }
}

/// The number of characters that a node matches.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) least: u32,
    /// `None` for no limit.
    most: Option<u32>,
}

impl Length {
    const fn exactly(characters: u32) -> Length {
        Length {
            least: characters,
            most: Some(characters),
        }
    }

    /// Returns the length of one node followed by another.
    fn and(self, other: Length) -> Length {
        let most = self.most.zip(other.most);
        Length {
            least: self.least.saturating_add(other.least),
            most: most.map(|(one, other)| one.saturating_add(other)),
        }
    }

    /// Returns the length of an alternation of two nodes.
    fn or(self, other: Length) -> Length {
        let most = self.most.zip(other.most);
        Length {
            least: self.least.min(other.least),
            most: most.map(|(one, other)| one.max(other)),
        }
    }
}

/// Returns the number of characters that a node matches.
pub(crate) fn length(node: &Node) -> Length {
    match node {
        Node::Empty | Node::Assertion(_) | Node::LookAround { .. } | Node::MatchStart => {
            Length::exactly(0)
        }
        Node::Literal(_) | Node::Class(_) => Length::exactly(1),
        Node::Group { node, .. } | Node::Atomic(node) => length(node),
        Node::Concatenation(nodes) => nodes
            .iter()
            .map(length)
            .fold(Length::exactly(0), Length::and),
        Node::Alternation(nodes) => {
            let lengths = nodes.iter().map(length);
            lengths.reduce(Length::or).unwrap_or(Length::exactly(0))
        }
        Node::Repetition(repetition) => {
            let one = length(&repetition.node);
            let most = one.most.zip(repetition.most);
            Length {
                least: one.least.saturating_mul(repetition.least),
                most: most.map(|(one, times)| one.saturating_mul(times)),
            }
        }
        Node::BackReference { .. } => Length {
            least: 0,
            most: None,
        },
    }
}
