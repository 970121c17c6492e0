//! Records with the terms of a phrase.

use super::sloppy::{SloppyMatcher, SloppyTerm};
use crate::matches::Matches;
use crate::postings::{END, Postings};
use crate::score::Scorer;

/// A term of a phrase.
#[derive(Clone, Debug)]
pub struct PhraseTerm<P> {
    /// The postings of the term, with positions.
    pub list: P,
    /// The position of the term in the phrase.
    pub position: u32,
    /// The number of the term. If the phrase has a term twice, both entries have the same number.
    pub term: usize,
}

/// Records with the terms of a phrase at the same distances as in the phrase. With slop, the terms
/// may be farther apart or in another order, as in Lucene: at most `slop` moves of a term by one
/// position are needed to make the phrase.
///
/// A record without positions does not match.
#[derive(Clone, Debug)]
pub struct Phrase<P, S> {
    /// The terms in increasing order of their number of records.
    terms: Vec<Member<P>>,
    scorer: S,
    matcher: Matcher,
    id: u64,
    /// The number of times that the current record has the phrase. 0 if it does not have the phrase
    /// or was not verified.
    frequency: f32,
    postings_read: u64,
    /// The least bound of the terms except the first.
    bound_of_others: Option<f64>,
}

#[derive(Clone, Debug)]
struct Member<P> {
    list: P,
    position: u32,
    count_at_most: u64,
}

#[derive(Clone, Debug)]
enum Matcher {
    Exact {
        /// The positions in the current record at which the phrase may begin.
        starts: Vec<u32>,
        positions: Vec<u32>,
    },
    Sloppy(Box<SloppyMatcher>),
}

impl<P: Postings, S: Scorer> Phrase<P, S> {
    /// Creates the list of the records with a phrase. It is empty if there are no terms.
    pub fn new(terms: Vec<PhraseTerm<P>>, slop: u32, scorer: S) -> Phrase<P, S> {
        let first = terms.iter().map(|term| term.position).min().unwrap_or(0);
        let mut terms: Vec<(Member<P>, usize)> = terms
            .into_iter()
            .map(|mut term| {
                let member = Member {
                    count_at_most: term.list.count_at_most(),
                    list: term.list,
                    position: term.position - first,
                };
                (member, term.term)
            })
            .collect();
        terms.sort_by_key(|(member, _)| member.count_at_most);
        let sloppy = terms.iter().map(|(member, term)| SloppyTerm {
            offset: member.position,
            term: *term,
        });
        let matcher = if slop == 0 {
            Matcher::Exact {
                starts: Vec::new(),
                positions: Vec::new(),
            }
        } else {
            Matcher::Sloppy(Box::new(SloppyMatcher::new(sloppy.collect(), slop)))
        };
        let mut phrase = Phrase {
            postings_read: terms.len() as u64,
            terms: terms.into_iter().map(|(member, _)| member).collect(),
            scorer,
            matcher,
            id: 0,
            frequency: 0.0,
            bound_of_others: None,
        };
        phrase.id = phrase.terms.first().map_or(END, |term| term.list.id());
        phrase.find();
        phrase
    }

    /// Returns the number of times that the current record has the phrase. If the phrase has slop,
    /// this is a sum of fractions.
    pub fn frequency(&self) -> f32 {
        self.frequency
    }

    /// Returns the number of tokens of the field in the current record.
    pub fn length(&mut self) -> u32 {
        self.terms.first_mut().map_or(0, |term| term.list.length())
    }

    /// Moves to the first record with the phrase, at or after the current record of the rarest
    /// term.
    fn find(&mut self) -> u64 {
        while self.align() != END && !self.has_phrase() {
            self.step();
        }
        self.id
    }

    /// Moves the rarest term to its next record.
    #[inline]
    fn step(&mut self) {
        self.postings_read += 1;
        self.id = self.terms.first_mut().map_or(END, |term| term.list.next());
    }

    /// Moves to the first record with all terms, at or after the current record of the rarest term.
    #[inline]
    fn align(&mut self) -> u64 {
        let Some((lead, others)) = self.terms.split_first_mut() else {
            self.id = END;
            return END;
        };
        let mut id = self.id;
        'records: while id != END {
            for other in &mut *others {
                self.postings_read += 1;
                let found = other.list.seek(id);
                if found != id {
                    self.postings_read += 1;
                    id = if found == END {
                        END
                    } else {
                        lead.list.seek(found)
                    };
                    continue 'records;
                }
            }
            break;
        }
        self.id = id;
        id
    }

    /// Returns `true` if the current record, which has all terms, has the phrase.
    fn has_phrase(&mut self) -> bool {
        self.frequency = match &mut self.matcher {
            Matcher::Exact { starts, positions } => {
                let count = exact_frequency(&mut self.terms, starts, positions);
                count as f32
            }
            Matcher::Sloppy(matcher) => {
                for (term, positions) in self.terms.iter_mut().zip(matcher.positions()) {
                    term.list.positions(positions);
                }
                matcher.frequency()
            }
        };
        self.frequency > 0.0
    }
}

/// Returns the number of times that the record has the terms at the same distances as the phrase.
fn exact_frequency<P: Postings>(
    terms: &mut [Member<P>],
    starts: &mut Vec<u32>,
    positions: &mut Vec<u32>,
) -> usize {
    let Some((first, others)) = terms.split_first_mut() else {
        return 0;
    };
    starts.clear();
    first.list.positions(starts);
    let offset = first.position;
    if offset > 0 {
        starts.retain_mut(|position| match position.checked_sub(offset) {
            Some(start) => {
                *position = start;
                true
            }
            None => false,
        });
    }
    for other in others {
        if starts.is_empty() {
            return 0;
        }
        positions.clear();
        other.list.positions(positions);
        intersect(starts, positions, other.position);
    }
    starts.len()
}

/// Removes each start for which `positions` has no `start + offset`. Both lists are in increasing
/// order.
#[inline]
fn intersect(starts: &mut Vec<u32>, positions: &[u32], offset: u32) {
    let mut rest = positions;
    starts.retain(|start| {
        let expected = start.saturating_add(offset);
        while let [first, behind @ ..] = rest
            && *first < expected
        {
            rest = behind;
        }
        rest.first() == Some(&expected)
    });
}

impl<P: Postings, S: Scorer> Matches for Phrase<P, S> {
    #[inline]
    fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.id != END {
            self.step();
            self.find();
        }
        self.id
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        // After `probe`, the current record may have all terms and not the phrase.
        if self.id >= id && self.frequency > 0.0 {
            return self.id;
        }
        self.move_to(id);
        self.find()
    }

    #[inline]
    fn probe(&mut self, id: u64) -> u64 {
        if self.id > id || self.id == id && self.frequency > 0.0 {
            return self.id;
        }
        self.move_to(id);
        self.frequency = 0.0;
        if self.align() == id && !self.has_phrase() {
            return id + 1;
        }
        self.id
    }

    fn score(&mut self) -> f64 {
        let length = self.length();
        self.scorer.score_phrase(self.frequency, length)
    }

    fn count_at_most(&mut self) -> u64 {
        self.terms.first().map_or(0, |term| term.count_at_most)
    }

    fn block_end(&mut self, id: u64) -> u64 {
        match (&self.matcher, self.terms.first_mut()) {
            (Matcher::Exact { .. }, Some(term)) => term.list.block_end(id),
            _ => END,
        }
    }

    /// An exact phrase occurs at most as often as each of its terms.
    fn block_bound(&mut self) -> f64 {
        let Matcher::Exact { .. } = self.matcher else {
            return self.scorer.bound_of_all();
        };
        let others = match self.bound_of_others {
            Some(bound) => bound,
            None => {
                let others = self.terms.iter_mut().skip(1);
                let bounds = others.map(|term| self.scorer.bound(term.list.bound()));
                let bound = bounds.fold(f64::INFINITY, f64::min);
                *self.bound_of_others.insert(bound)
            }
        };
        let first = self.terms.first_mut();
        let bound = first.map(|term| self.scorer.bound(term.list.block_bound()));
        bound.map_or(0.0, |bound| bound.min(others))
    }

    fn bound(&mut self) -> f64 {
        if matches!(self.matcher, Matcher::Sloppy(_)) {
            return self.scorer.bound_of_all();
        }
        let terms = self.terms.iter_mut();
        let bounds = terms.map(|term| self.scorer.bound(term.list.bound()));
        bounds.fold(f64::INFINITY, f64::min)
    }

    fn postings_read(&self) -> u64 {
        self.postings_read
    }

    fn postings(&mut self) -> u64 {
        self.terms.iter().map(|term| term.count_at_most).sum()
    }
}

impl<P: Postings, S> Phrase<P, S> {
    /// Moves the rarest term to the first of its records from `id` on.
    #[inline]
    fn move_to(&mut self, id: u64) {
        if self.id < id {
            self.postings_read += 1;
            let lead = self.terms.first_mut();
            self.id = lead.map_or(END, |term| term.list.seek(id));
        }
    }
}
