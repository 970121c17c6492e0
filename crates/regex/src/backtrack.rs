//! The backtracking engine: runs a [`Program`] on a text.
//!
//! Alternatives wait on a stack. A failure takes the newest one; on the way it restores the slots
//! that were changed since. The stack is bounded, so are the steps from one start position, and the
//! interrupt is checked every few thousand characters.

use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;

use crate::program::{Address, Instruction, Loop, Program, Slot, Span};
use crate::syntax::{Assertion, Greed, Word, is_same_letter};
use crate::{Captures, MatchError};

/// Alternatives tried from one start position: PCRE2's default for its match limit.
const STEPS_MAX: u32 = 10_000_000;

/// Bytes of waiting alternatives.
const STACK_BYTES_MAX: usize = 64 << 20;

/// Instructions and characters between two checks of the interrupt.
const UNITS_PER_CHECK: usize = 1 << 14;

/// A slot without a value.
const NONE: u32 = u32::MAX;

/// What waits on the stack.
#[derive(Clone, Copy)]
enum Frame {
    /// Continue here.
    Branch { address: Address, position: u32 },
    /// The slot had this value.
    Restore { slot: Slot, value: u32 },
    /// A greedy span may give back characters down to `low`.
    GiveBack {
        address: Address,
        low: u32,
        position: u32,
    },
    /// The lazy span at this address has taken so many characters and may take one more.
    TakeMore {
        address: Address,
        position: u32,
        taken: u32,
    },
    /// A look-behind may go back so many characters more.
    StepBack {
        address: Address,
        position: u32,
        more: u32,
    },
}

/// A search in one text; reused for its start positions.
pub(crate) struct Search<'s> {
    program: &'s Program,
    text: &'s str,
    /// Where the search begins, for `\G`.
    search_start: usize,
    interrupt: &'s dyn Interrupt,
    slots: Vec<u32>,
    stack: Vec<Frame>,
    steps_left: u32,
    units: usize,
}

/// Whether the current way leads on.
enum Outcome {
    Continue(Address, usize),
    Fail,
}

impl<'s> Search<'s> {
    /// Fails for a text of 4 GiB.
    pub(crate) fn new(
        program: &'s Program,
        text: &'s str,
        search_start: usize,
        interrupt: &'s dyn Interrupt,
    ) -> Result<Search<'s>, MatchError> {
        // Positions on the stack have 32 bits, and `NONE` is none.
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

    /// The groups of the match that begins at `start`.
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

    /// Counts work, and checks the interrupt now and then.
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

    /// The value of a slot that an earlier instruction has set.
    fn required(&self, slot: Slot) -> Result<usize, MatchError> {
        let value = self.slot(slot as usize);
        value.ok_or_else(|| Bug::new(format!("slot {slot} is used before it is set")).into())
    }

    /// Sets a slot without a way back.
    fn set(&mut self, slot: usize, value: usize) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value as u32;
        }
    }

    /// Sets a slot until backtracking restores it.
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

    /// Takes the newest alternative.
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

    /// Continues with what waited; `None` if it has nothing left to try.
    fn resume(&mut self, frame: Frame) -> Result<Option<(Address, usize)>, MatchError> {
        match frame {
            Frame::Branch { address, position } => Ok(Some((address, position as usize))),
            // Restored by the caller.
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
                taken,
            } => {
                let Some(Instruction::Span(span)) = self.program.instructions.get(address as usize)
                else {
                    return Err(Bug::new(format!("instruction {address} is no span")).into());
                };
                Ok(self.take_more(span, address, position as usize, taken)?)
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

    fn take_more(
        &mut self,
        span: &Span,
        address: Address,
        position: usize,
        taken: u32,
    ) -> Result<Option<(Address, usize)>, MatchError> {
        let Some(one) = self.at(position).filter(|one| span.set.contains(*one)) else {
            return Ok(None);
        };
        let (position, taken) = (position + one.len_utf8(), taken + 1);
        if taken < span.most {
            self.push(Frame::TakeMore {
                address,
                position: position as u32,
                taken,
            })?;
        }
        Ok(Some((address + 1, position)))
    }

    /// The character at a position.
    #[inline]
    fn at(&self, position: usize) -> Option<char> {
        match self.text.as_bytes().get(position) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(position..)?.chars().next(),
        }
    }

    /// The position of the character before.
    fn before(&self, position: usize) -> Option<usize> {
        let character = self.text.get(..position)?.chars().next_back()?;
        Some(position - character.len_utf8())
    }

    /// Runs one instruction.
    #[inline]
    fn step(
        &mut self,
        instruction: &Instruction,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
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
                self.push(Frame::Branch {
                    address: *second,
                    position: position as u32,
                })?;
                Ok(Outcome::Continue(*first, position))
            }
            Instruction::Jump(to) => Ok(Outcome::Continue(*to, position)),
            Instruction::Span(span) => self.span(span, address, position),
            Instruction::SavePosition(slot) => {
                self.change(*slot, position)?;
                next(position)
            }
            Instruction::CloseGroup { group, start } => {
                let from = self.required(*start)?;
                self.change(2 * group, from)?;
                self.change(2 * group + 1, position)?;
                next(position)
            }
            Instruction::ResetCounter(slot) => {
                self.change(*slot, 0)?;
                next(position)
            }
            Instruction::Loop(head) => self.round(head, address, position),
            Instruction::CountRound(counter) => {
                self.change(*counter, self.required(*counter)? + 1)?;
                next(position)
            }
            Instruction::EndRound { start, head } => self.end_round(*start, *head, position),
            Instruction::SaveHeight(slot) => {
                // The frame that restores the slot is below the height.
                self.change(*slot, self.stack.len() + 1)?;
                next(position)
            }
            Instruction::Cut(height) => {
                self.cut(*height)?;
                next(position)
            }
            Instruction::RestorePosition(slot) => next(self.required(*slot)?),
            Instruction::FailAbove(height) => {
                self.unwind(*height)?;
                Ok(Outcome::Fail)
            }
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
            // Ends the caller's loop.
            Instruction::Match => next(position),
        }
    }

    fn span(
        &mut self,
        span: &Span,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let wanted = match span.greed {
            Greed::Fewest => span.least,
            Greed::Most | Greed::Possessive => span.most,
        };
        let (mut at, mut taken, mut low) = (position, 0, position);
        while taken < wanted
            && let Some(one) = self.at(at).filter(|one| span.set.contains(*one))
        {
            at += one.len_utf8();
            taken += 1;
            if taken == span.least {
                low = at;
            }
            if taken.is_multiple_of(64) {
                self.count(64)?;
            }
        }
        if taken < span.least {
            return Ok(Outcome::Fail);
        }
        if span.greed == Greed::Fewest && span.most > span.least {
            self.push(Frame::TakeMore {
                address,
                position: at as u32,
                taken,
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

    /// The rounds that a loop has begun; of a loop without a counter, always 0.
    fn rounds(&self, head: &Loop) -> Result<usize, MatchError> {
        head.counter.map_or(Ok(0), |counter| self.required(counter))
    }

    fn round(
        &mut self,
        head: &Loop,
        address: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let rounds = self.rounds(head)?;
        let (has_enough, has_all) = (rounds >= head.least as usize, rounds >= head.most as usize);
        if has_all {
            return Ok(Outcome::Continue(head.exit, position));
        }
        let (inside, outside) = (address + 1, head.exit);
        let (first, second) = if head.is_lazy {
            (outside, inside)
        } else {
            (inside, outside)
        };
        if !has_enough {
            return Ok(Outcome::Continue(inside, position));
        }
        self.push(Frame::Branch {
            address: second,
            position: position as u32,
        })?;
        Ok(Outcome::Continue(first, position))
    }

    fn end_round(
        &mut self,
        start: Slot,
        head: Address,
        position: usize,
    ) -> Result<Outcome, MatchError> {
        let Some(Instruction::Loop(loop_head)) = self.program.instructions.get(head as usize)
        else {
            return Err(Bug::new(format!("instruction {head} heads no loop")).into());
        };
        let rounds = self.rounds(loop_head)?;
        let is_empty = self.slot(start as usize) == Some(position);
        if is_empty && rounds >= loop_head.least as usize {
            return Ok(Outcome::Continue(loop_head.exit, position));
        }
        Ok(Outcome::Continue(head, position))
    }

    /// The height of the stack that a slot holds.
    fn height(&self, slot: Slot) -> Result<usize, MatchError> {
        let (height, top) = (self.required(slot)?, self.stack.len());
        if height <= top {
            Ok(height)
        } else {
            Err(Bug::new(format!("height {height} of a stack of {top}")).into())
        }
    }

    /// Drops alternatives and keeps what restores slots: an older alternative may still need that.
    fn cut(&mut self, slot: Slot) -> Result<(), MatchError> {
        let height = self.height(slot)?;
        self.count((self.stack.len() - height) / 4)?;
        let mut kept = height;
        for place in height..self.stack.len() {
            if let Some(Frame::Restore { .. }) = self.stack.get(place) {
                self.stack.swap(kept, place);
                kept += 1;
            }
        }
        self.stack.truncate(kept);
        Ok(())
    }

    /// Restores slots down to a height, as if every alternative above had failed.
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

    /// Where the text that a group matched ends if it stands at `position` again.
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
            // Not behind a line feed that ends the text.
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
