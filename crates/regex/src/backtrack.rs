//! The backtracking engine: runs a [`Program`] on a text.
//!
//! Pending alternatives are on a stack. After a failure, the search continues with the newest one,
//! and restores the slots that were changed after it was pushed. The size of the stack and the
//! number of steps from one start position are limited. The interrupt is checked every few thousand
//! characters.

use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;

use crate::program::{Address, Instruction, Loop, Program, Slot, Span};
use crate::syntax::{Assertion, Greed, Word, is_same_letter};
use crate::{Captures, MatchError};

/// The most alternatives that are tried from one start position. It is PCRE2's default match limit.
const STEPS_MAX: u32 = 10_000_000;

/// The size limit of the stack in bytes.
const STACK_BYTES_MAX: usize = 64 << 20;

/// The number of instructions and characters between two checks of the interrupt.
const UNITS_PER_CHECK: usize = 1 << 14;

/// The content of a slot without a value.
const NONE: u32 = u32::MAX;

/// An entry of the stack: an alternative, or the old value of a slot.
#[derive(Clone, Copy)]
enum Frame {
    /// Continue at this instruction and position.
    Branch { address: Address, position: u32 },
    /// Set the slot to the value that it had before.
    Restore { slot: Slot, value: u32 },
    /// A greedy span ends at `position` and may give back characters. It ends at `low` or later.
    /// `address` is the instruction after the span.
    GiveBack {
        address: Address,
        low: u32,
        position: u32,
    },
    /// The lazy span at this address has matched so many `characters` and may match one more.
    TakeMore {
        address: Address,
        position: u32,
        characters: u32,
    },
    /// A look-behind may move back by up to `more` characters more. `address` is the instruction
    /// after the step back.
    StepBack {
        address: Address,
        position: u32,
        more: u32,
    },
}

/// A search in one text. It is reused for all start positions.
pub(crate) struct Search<'s> {
    program: &'s Program,
    text: &'s str,
    /// The position where the search begins, which `\G` matches.
    search_start: usize,
    interrupt: &'s dyn Interrupt,
    slots: Vec<u32>,
    stack: Vec<Frame>,
    steps_left: u32,
    /// Work since the last check of the interrupt.
    units: usize,
}

/// The result of an instruction.
enum Outcome {
    /// Continue at this instruction and position.
    Continue(Address, usize),
    /// The instruction does not match. The search continues with the newest alternative.
    Fail,
}

impl<'s> Search<'s> {
    /// Prepares a search. Fails if the text has 4 GiB or more.
    pub(crate) fn new(
        program: &'s Program,
        text: &'s str,
        search_start: usize,
        interrupt: &'s dyn Interrupt,
    ) -> Result<Search<'s>, MatchError> {
        // Positions on the stack have 32 bits, and the value of `NONE` is reserved.
        if text.len() >= NONE as usize {
            return Err(MatchError::TooMuchMemory);
        }
        Ok(Search {
            program,
            text,
            search_start,
            interrupt,
            slots: vec![NONE; program.slots],
            stack: Vec::new(),
            steps_left: STEPS_MAX,
            units: 0,
        })
    }

    /// Returns the groups of the match that begins at `start`, or `None`. Fails if the search is
    /// interrupted, or needs more steps or memory than it may use.
    pub(crate) fn match_at(&mut self, start: usize) -> Result<Option<Captures>, MatchError> {
        self.slots.fill(NONE);
        self.stack.clear();
        self.steps_left = STEPS_MAX;
        self.set(0, start);
        let (mut address, mut position) = (0, start);
        loop {
            self.count(1)?;
            let instruction = self.program.instructions.get(address as usize);
            let instruction = instruction
                .ok_or_else(|| Bug::new(format!("a pattern has no instruction {address}")))?;
            if matches!(instruction, Instruction::Match) {
                self.set(1, position);
                return Ok(Some(self.captures()));
            }
            let outcome = self.step(instruction, address, position)?;
            (address, position) = match outcome {
                Outcome::Continue(address, position) => (address, position),
                Outcome::Fail => match self.backtrack()? {
                    Some(alternative) => alternative,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Counts work in instructions and characters. Checks the interrupt after each
    /// [`UNITS_PER_CHECK`].
    #[inline]
    pub(crate) fn count(&mut self, units: usize) -> Result<(), MatchError> {
        self.units += units;
        if self.units < UNITS_PER_CHECK {
            return Ok(());
        }
        self.units = 0;
        Ok(self.interrupt.check()?)
    }

    fn captures(&self) -> Captures {
        let range = |group: usize| {
            let (start, end) = (self.slot(2 * group)?, self.slot(2 * group + 1)?);
            Some(start..end)
        };
        (0..self.program.groups).map(range).collect()
    }

    fn slot(&self, slot: usize) -> Option<usize> {
        let value = self.slots.get(slot).copied();
        value
            .filter(|value| *value != NONE)
            .map(|value| value as usize)
    }

    /// Returns the value of a slot that an earlier instruction has set. Fails with a bug if it has
    /// none.
    fn required(&self, slot: Slot) -> Result<usize, MatchError> {
        let value = self.slot(slot as usize);
        value.ok_or_else(|| Bug::new(format!("slot {slot} is used before it is set")).into())
    }

    /// Sets a slot. Backtracking does not undo this.
    fn set(&mut self, slot: usize, value: usize) {
        if let Some(old) = self.slots.get_mut(slot) {
            *old = value as u32;
        }
    }

    /// Sets a slot. Backtracking restores its old value.
    fn change(&mut self, slot: Slot, value: usize) -> Result<(), MatchError> {
        let old = self.slots.get(slot as usize).copied().unwrap_or(NONE);
        self.push(Frame::Restore { slot, value: old })?;
        self.set(slot as usize, value);
        Ok(())
    }

    #[inline]
    fn push(&mut self, frame: Frame) -> Result<(), MatchError> {
        if self.stack.len() * size_of::<Frame>() >= STACK_BYTES_MAX {
            return Err(MatchError::TooMuchMemory);
        }
        self.stack.push(frame);
        Ok(())
    }

    /// Restores slots and returns the newest alternative; `None` if there is none left.
    fn backtrack(&mut self) -> Result<Option<(Address, usize)>, MatchError> {
        while let Some(frame) = self.stack.pop() {
            if let Frame::Restore { slot, value } = frame {
                self.set(slot as usize, value as usize);
                continue;
            }
            self.count(1)?;
            self.steps_left = self
                .steps_left
                .checked_sub(1)
                .ok_or(MatchError::TooManySteps)?;
            if let Some(alternative) = self.resume(frame)? {
                return Ok(Some(alternative));
            }
        }
        Ok(None)
    }

    /// Returns the instruction and the position at which an alternative continues; `None` if it
    /// does not match.
    fn resume(&mut self, frame: Frame) -> Result<Option<(Address, usize)>, MatchError> {
        match frame {
            Frame::Branch { address, position } => Ok(Some((address, position as usize))),
            // `backtrack` has handled it.
            Frame::Restore { .. } => Ok(None),
            Frame::GiveBack {
                address,
                low,
                position,
            } => {
                let Some(before) = self.before(position as usize) else {
                    return Ok(None);
                };
                if before > low as usize {
                    let position = before as u32;
                    self.push(Frame::GiveBack {
                        address,
                        low,
                        position,
                    })?;
                }
                Ok(Some((address, before)))
            }
            Frame::TakeMore {
                address,
                position,
                characters,
            } => {
                let Some(Instruction::Span(span)) = self.program.instructions.get(address as usize)
                else {
                    return Err(Bug::new(format!("instruction {address} is no span")).into());
                };
                Ok(self.take_more(span, address, position as usize, characters)?)
            }
            Frame::StepBack {
                address,
                position,
                more,
            } => {
                let Some(before) = self.before(position as usize) else {
                    return Ok(None);
                };
                if more > 1 {
                    self.push(Frame::StepBack {
                        address,
                        position: before as u32,
                        more: more - 1,
                    })?;
                }
                Ok(Some((address, before)))
            }
        }
    }

    /// Extends a lazy span by one character.
    fn take_more(
        &mut self,
        span: &Span,
        address: Address,
        position: usize,
        characters: u32,
    ) -> Result<Option<(Address, usize)>, MatchError> {
        let Some(one) = self.at(position).filter(|one| span.set.contains(*one)) else {
            return Ok(None);
        };
        let (position, characters) = (position + one.len_utf8(), characters + 1);
        if characters < span.most {
            self.push(Frame::TakeMore {
                address,
                position: position as u32,
                characters,
            })?;
        }
        Ok(Some((address + 1, position)))
    }

    /// Returns the character at a position.
    #[inline]
    fn at(&self, position: usize) -> Option<char> {
        match self.text.as_bytes().get(position) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(position..)?.chars().next(),
        }
    }

    /// Returns the position of the character before `position`.
    fn before(&self, position: usize) -> Option<usize> {
        let character = self.text.get(..position)?.chars().next_back()?;
        Some(position - character.len_utf8())
    }

    /// Pushes the alternative that continues at an instruction.
    #[inline]
    fn push_branch(&mut self, address: Address, position: usize) -> Result<(), MatchError> {
        self.push(Frame::Branch {
            address,
            position: position as u32,
        })
    }

    /// Runs one instruction.
    #[inline]
    fn step(
        &mut self,
        instruction: &Instruction,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let stay = Outcome::Continue(address + 1, position);
        let next = |position| Ok(Outcome::Continue(address + 1, position));
        let next_if = |holds: bool, position| {
            if holds {
                Ok(Outcome::Continue(address + 1, position))
            } else {
                Ok(Outcome::Fail)
            }
        };
        match instruction {
            Instruction::Text(text) => {
                let rest = self.text.as_bytes().get(position..).unwrap_or_default();
                next_if(rest.starts_with(text.as_bytes()), position + text.len())
            }
            Instruction::Set(set) => match self.at(position) {
                Some(one) if set.contains(one) => next(position + one.len_utf8()),
                _ => Ok(Outcome::Fail),
            },
            Instruction::Assert(assertion) => next_if(self.holds(assertion, position), position),
            Instruction::Split(first, second) => {
                self.push_branch(*second, position)?;
                Ok(Outcome::Continue(*first, position))
            }
            Instruction::Jump(to) => Ok(Outcome::Continue(*to, position)),
            Instruction::Span(span) => self.span(span, address, position),
            Instruction::SavePosition(slot) => self.change(*slot, position).map(|()| stay),
            Instruction::CloseGroup { group, start } => {
                let from = self.required(*start)?;
                self.change(2 * group, from)?;
                self.change(2 * group + 1, position).map(|()| stay)
            }
            Instruction::ResetCounter(slot) => self.change(*slot, 0).map(|()| stay),
            Instruction::Loop(head) => self.iteration(head, address, position),
            Instruction::CountIteration(counter) => {
                let count = self.required(*counter)?;
                self.change(*counter, count + 1).map(|()| stay)
            }
            Instruction::EndIteration { start, head } => {
                self.end_iteration(*start, *head, position)
            }
            Instruction::SaveHeight(slot) => {
                // The frame that restores the slot is below the height.
                self.change(*slot, self.stack.len() + 1).map(|()| stay)
            }
            Instruction::Cut(height) => self.cut(*height).map(|()| stay),
            Instruction::RestorePosition(slot) => next(self.required(*slot)?),
            Instruction::FailAbove(height) => self.unwind(*height).map(|()| Outcome::Fail),
            Instruction::StepBack { least, most } => {
                self.step_back(*least, *most, address, position)
            }
            Instruction::RequirePosition(slot) => {
                next_if(self.slot(*slot as usize) == Some(position), position)
            }
            Instruction::BackReference {
                group,
                case_insensitive,
            } => match self.repeated(*group as usize, *case_insensitive, position)? {
                Some(end) => next(end),
                None => Ok(Outcome::Fail),
            },
            // The caller's loop ends before this.
            Instruction::Match => Ok(stay),
        }
    }

    /// Matches as many characters as the span tries first.
    fn span(
        &mut self,
        span: &Span,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let count = match span.greed {
            Greed::Fewest => span.least,
            Greed::Most | Greed::Possessive => span.most,
        };
        let (mut at, mut characters, mut low) = (position, 0, position);
        while characters < count
            && let Some(one) = self.at(at).filter(|one| span.set.contains(*one))
        {
            at += one.len_utf8();
            characters += 1;
            if characters == span.least {
                low = at;
            }
            if characters.is_multiple_of(64) {
                self.count(64)?;
            }
        }
        if characters < span.least {
            return Ok(Outcome::Fail);
        }
        if span.greed == Greed::Fewest && span.most > span.least {
            self.push(Frame::TakeMore {
                address,
                position: at as u32,
                characters,
            })?;
        }
        if span.greed == Greed::Most && at > low {
            self.push(Frame::GiveBack {
                address: address + 1,
                low: low as u32,
                position: at as u32,
            })?;
        }
        Ok(Outcome::Continue(address + 1, at))
    }

    /// Returns the number of iterations that a loop has begun; 0 if the loop has no counter.
    fn iterations(&self, head: &Loop) -> Result<usize, MatchError> {
        head.counter.map_or(Ok(0), |counter| self.required(counter))
    }

    /// Begins an iteration of a loop, or leaves the loop.
    fn iteration(
        &mut self,
        head: &Loop,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let iterations = self.iterations(head)?;
        if iterations >= head.most as usize {
            return Ok(Outcome::Continue(head.exit, position));
        }
        let has_enough = iterations >= head.least as usize;
        let (inside, outside) = (address + 1, head.exit);
        let (first, second) = if head.is_lazy {
            (outside, inside)
        } else {
            (inside, outside)
        };
        if !has_enough {
            return Ok(Outcome::Continue(inside, position));
        }
        self.push_branch(second, position)?;
        Ok(Outcome::Continue(first, position))
    }

    fn end_iteration(
        &mut self,
        start: Slot,
        head: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let Some(Instruction::Loop(loop_head)) = self.program.instructions.get(head as usize)
        else {
            return Err(Bug::new(format!("instruction {head} heads no loop")).into());
        };
        let iterations = self.iterations(loop_head)?;
        let is_empty = self.slot(start as usize) == Some(position);
        if is_empty && iterations >= loop_head.least as usize {
            return Ok(Outcome::Continue(loop_head.exit, position));
        }
        Ok(Outcome::Continue(head, position))
    }

    /// Returns the height of the stack that a slot holds. Fails with a bug if the stack is lower.
    fn height(&self, slot: Slot) -> Result<usize, MatchError> {
        let (height, top) = (self.required(slot)?, self.stack.len());
        if height <= top {
            Ok(height)
        } else {
            Err(Bug::new(format!("height {height} of a stack of {top}")).into())
        }
    }

    /// Drops the alternatives above the height in the slot. Keeps the frames that restore slots,
    /// because an older alternative may need the old values.
    fn cut(&mut self, slot: Slot) -> Result<(), MatchError> {
        let height = self.height(slot)?;
        self.count((self.stack.len() - height) / 4)?;
        let mut end = height;
        for index in height..self.stack.len() {
            if let Some(Frame::Restore { .. }) = self.stack.get(index) {
                self.stack.swap(end, index);
                end += 1;
            }
        }
        self.stack.truncate(end);
        Ok(())
    }

    /// Restores slots down to the height in the slot, as if every alternative above had failed.
    fn unwind(&mut self, slot: Slot) -> Result<(), MatchError> {
        let height = self.height(slot)?;
        while self.stack.len() > height
            && let Some(frame) = self.stack.pop()
        {
            if let Frame::Restore { slot, value } = frame {
                self.set(slot as usize, value as usize);
            }
        }
        Ok(())
    }

    /// Moves back by `least` characters, and pushes an alternative that moves further back.
    fn step_back(
        &mut self,
        least: u32,
        most: u32,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let mut at = position;
        for _ in 0..least {
            match self.before(at) {
                Some(before) => at = before,
                None => return Ok(Outcome::Fail),
            }
        }
        if most > least {
            self.push(Frame::StepBack {
                address: address + 1,
                position: at as u32,
                more: most - least,
            })?;
        }
        Ok(Outcome::Continue(address + 1, at))
    }

    /// Returns the end of the back-reference if the text that the group matched is also at
    /// `position`.
    fn repeated(
        &mut self,
        group: usize,
        case_insensitive: bool,
        position: usize,
    ) -> Result<Option<usize>, MatchError> {
        let (Some(start), Some(end)) = (self.slot(2 * group), self.slot(2 * group + 1)) else {
            return Ok(None);
        };
        let matched = self.text.get(start..end).unwrap_or_default();
        let rest = self.text.get(position..).unwrap_or_default();
        self.count(matched.len() / 4)?;
        if !case_insensitive {
            return Ok(rest.starts_with(matched).then(|| position + matched.len()));
        }
        let (mut here, mut at) = (rest.chars(), position);
        for one in matched.chars() {
            match here.next() {
                Some(other) if is_same_letter(one, other) => at += other.len_utf8(),
                _ => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    fn holds(&self, assertion: &Assertion, position: usize) -> bool {
        let bytes = self.text.as_bytes();
        let is_line_feed = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b'\n');
        match assertion {
            Assertion::TextStart => position == 0,
            Assertion::SearchStart => position == self.search_start,
            Assertion::TextEnd => position == bytes.len(),
            // A line feed that ends the text does not begin a line, as in PCRE.
            Assertion::LineStart => {
                position == 0 || (position < bytes.len() && is_line_feed(position.checked_sub(1)))
            }
            Assertion::LineEnd => position == bytes.len() || is_line_feed(Some(position)),
            Assertion::TextEndOrFinalNewline => {
                position == bytes.len()
                    || (position + 1 == bytes.len() && is_line_feed(Some(position)))
            }
            Assertion::WordBoundary { is_negated, word } => {
                self.is_word_boundary(*word, position) != *is_negated
            }
        }
    }

    fn is_word_boundary(&self, word: Word, position: usize) -> bool {
        let before = self
            .text
            .get(..position)
            .and_then(|text| text.chars().next_back());
        let is_word = |one: Option<char>| one.is_some_and(|one| word.contains(one));
        is_word(before) != is_word(self.at(position))
    }
}
