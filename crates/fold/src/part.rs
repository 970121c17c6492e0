//! What a tail is made of: entries as they came, which are put in order when somebody needs that.
//!
//! Who looks for one key finds it by fingerprints, in a few microseconds, where sorting takes a millisecond: so
//! writers and readers that take turns need not sort what the next fold sorts all the same.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use windrow_storage::Position;

use crate::chunk::Chunk;
use crate::entry::{Entry, EntryKey, RecordId, same_key};
use crate::marks::Marks;
use crate::pile::{Pile, fingerprint};

/// More entries than this are put in order by who makes the part: looking through them takes too long.
pub const UNORDERED_MAX: usize = 64 << 10;
/// After so many looks through a pile, it pays to have it in order.
const LOOKS_MAX: u32 = 64;
/// A key that more than such a part of the entries have, and a few, is not copied out of them.
const COPIED_PART: usize = 16;
const COPIED_MIN: usize = 64;
/// So many fingerprints are compared at once.
const STRETCH: usize = 256;

/// Entries of a tail.
#[derive(Debug)]
pub struct Part {
    entries: Entries,
    /// Counted when they are asked for first.
    marks: OnceLock<Marks>,
}

#[derive(Debug)]
enum Entries {
    Ordered(Arc<Chunk>),
    AsTheyCame(Box<Unordered>),
}

enum Looked<'p> {
    Ordered(&'p Arc<Chunk>),
    AsTheyCame(&'p Unordered),
}

#[derive(Debug)]
struct Unordered {
    pile: Pile,
    /// Made when somebody looks for a key first.
    fingerprints: OnceLock<Vec<u32>>,
    looks: AtomicU32,
    /// From when somebody needs their order first.
    chunk: OnceLock<Arc<Chunk>>,
}

impl From<Chunk> for Part {
    fn from(chunk: Chunk) -> Part {
        Part {
            entries: Entries::Ordered(Arc::new(chunk)),
            marks: OnceLock::new(),
        }
    }
}

impl From<Pile> for Part {
    fn from(pile: Pile) -> Part {
        let pile = match Chunk::of_ordered(pile) {
            Ok(chunk) => return Part::from(chunk),
            Err(pile) if pile.len() > UNORDERED_MAX => return Part::from(Chunk::of(&pile)),
            Err(pile) => pile,
        };
        let unordered = Unordered {
            pile,
            fingerprints: OnceLock::new(),
            looks: AtomicU32::new(0),
            chunk: OnceLock::new(),
        };
        Part {
            entries: Entries::AsTheyCame(Box::new(unordered)),
            marks: OnceLock::new(),
        }
    }
}

impl Part {
    /// The entries of several parts.
    pub fn join(parts: &[Arc<Part>]) -> Part {
        let pile = Pile::join(parts.iter().map(|part| part.pile()));
        let is_unordered = parts.iter().all(|part| part.ordered().is_none());
        let joined = match is_unordered {
            true => Part::from(pile),
            false => Part::from(Chunk::of(&pile)),
        };
        let known: Option<Vec<&Marks>> = parts.iter().map(|part| part.marks.get()).collect();
        if let Some(known) = known {
            joined.marks.get_or_init(|| {
                let mut marks = Marks::default();
                known.into_iter().for_each(|one| marks.join(one));
                marks
            });
        }
        debug_assert_eq!(
            joined.len(),
            parts.iter().map(|part| part.len()).sum::<usize>(),
            "entries were lost where parts were joined"
        );
        joined
    }

    /// Keeps what is in order by now in no other way besides.
    pub fn shed(part: &mut Arc<Part>) {
        if let Entries::AsTheyCame(unordered) = &part.entries
            && let Some(chunk) = unordered.chunk.get()
        {
            let marks = part.marks.clone();
            let entries = Entries::Ordered(chunk.clone());
            *part = Arc::new(Part { entries, marks });
        }
    }

    pub fn len(&self) -> usize {
        self.pile().len()
    }

    pub fn is_empty(&self) -> bool {
        self.pile().is_empty()
    }

    /// Memory held, in bytes, without shared buffers.
    pub fn bytes(&self) -> usize {
        self.pile().bytes()
    }

    pub fn newest_position(&self) -> Position {
        self.pile().newest_position()
    }

    /// The entries, in order where that is known.
    fn pile(&self) -> &Pile {
        match &self.entries {
            Entries::Ordered(chunk) => chunk.pile(),
            Entries::AsTheyCame(unordered) => {
                let chunk = unordered.chunk.get();
                chunk.map_or(&unordered.pile, |chunk| chunk.pile())
            }
        }
    }

    /// The entry of that number, in no certain order.
    pub fn get(&self, number: usize) -> Option<Entry<'_>> {
        self.pile().get(number)
    }

    /// All of them, in no certain order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.pile().entries()
    }

    /// Where their order is known.
    fn ordered(&self) -> Option<&Arc<Chunk>> {
        match &self.entries {
            Entries::Ordered(chunk) => Some(chunk),
            Entries::AsTheyCame(unordered) => unordered.chunk.get(),
        }
    }

    /// The entries in order.
    pub fn chunk(&self) -> &Arc<Chunk> {
        match &self.entries {
            Entries::Ordered(chunk) => chunk,
            Entries::AsTheyCame(unordered) => unordered.chunk(),
        }
    }

    /// A chunk that has all entries of this key, and perhaps others. None where it has none.
    pub fn of_key(&self, key: &[u8]) -> Option<Arc<Chunk>> {
        match self.to_look_at() {
            Looked::Ordered(chunk) => {
                let first = chunk.get(chunk.lower_bound(key, RecordId::MIN))?;
                (first.key == key).then(|| chunk.clone())
            }
            Looked::AsTheyCame(unordered) => unordered.look_for(key),
        }
    }

    /// How many entries lie between two places, the first included, the second not.
    pub fn count(&self, from: EntryKey<'_>, to: EntryKey<'_>) -> usize {
        match self.to_look_at() {
            Looked::Ordered(chunk) => {
                let before = |bound: EntryKey<'_>| chunk.lower_bound(bound.key, bound.id);
                before(to).saturating_sub(before(from))
            }
            Looked::AsTheyCame(unordered) => unordered.pile.count(from, to),
        }
    }

    /// Its entries as somebody looks at them who can do so in order and as they came.
    fn to_look_at(&self) -> Looked<'_> {
        match &self.entries {
            Entries::Ordered(chunk) => Looked::Ordered(chunk),
            Entries::AsTheyCame(unordered) => match unordered.chunk.get() {
                Some(chunk) => Looked::Ordered(chunk),
                None if unordered.is_looked_at_often() => Looked::Ordered(unordered.chunk()),
                None => Looked::AsTheyCame(unordered),
            },
        }
    }

    /// Its marks, whose keys begin with this byte.
    pub fn marks(&self, first: u8) -> &Marks {
        self.marks.get_or_init(|| {
            let mut marks = Marks::default();
            let mut note = |entry: Entry<'_>| marks.note(entry.key, entry.deleted);
            match self.ordered() {
                Some(chunk) => {
                    let entries = chunk.pile().entries();
                    let begins = |entry: &Entry<'_>| entry.key.first() <= Some(&first);
                    let of_first = |entry: &Entry<'_>| entry.key.first() == Some(&first);
                    entries.take_while(begins).filter(of_first).for_each(note);
                }
                None => self.pile().beginning_with(first).for_each(&mut note),
            }
            marks
        })
    }
}

impl Unordered {
    fn chunk(&self) -> &Arc<Chunk> {
        self.chunk.get_or_init(|| Arc::new(Chunk::of(&self.pile)))
    }

    fn is_looked_at_often(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= LOOKS_MAX
    }

    /// The entries of this key.
    fn look_for(&self, key: &[u8]) -> Option<Arc<Chunk>> {
        let fingerprints = self
            .fingerprints
            .get_or_init(|| self.pile.fingerprints().collect());
        let wanted = fingerprint(key);
        let has_key = |number: &u32| {
            let entry = self.pile.get(*number as usize);
            entry.is_some_and(|entry| same_key(entry.key, key))
        };
        let mut found: Vec<u32> = Vec::new();
        // Most stretches are passed over without looking at single ones.
        for (stretch, first) in fingerprints.chunks(STRETCH).zip((0..).step_by(STRETCH)) {
            if stretch.contains(&wanted) {
                let numbers = (first..).zip(stretch);
                let numbers = numbers.filter(|(_, one)| **one == wanted);
                found.extend(numbers.map(|(number, _)| number).filter(has_key));
            }
        }
        match found.len() {
            0 => None,
            // Copied at each look, they would cost more than their order.
            many if many > self.pile.len() / COPIED_PART + COPIED_MIN => Some(self.chunk().clone()),
            _ => Some(Arc::new(Chunk::of(&self.pile.pick(found.into_iter())))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PileBuilder;

    /// Keys of all lengths, many of them several times; `first` tells the positions apart.
    fn pile(first: u64, entries: u64) -> Pile {
        let mut builder = PileBuilder::new(Position(first), 0);
        for number in 0..entries {
            let key = key(number * 7919 % (entries / 2 + 1));
            builder.add(Entry {
                key: &key,
                id: RecordId(number),
                position: Position(first + number),
                deleted: number % 5 == 0,
                payload: b"",
            });
        }
        builder.finish()
    }

    fn key(number: u64) -> Vec<u8> {
        let text = format!("{number}-{}", "beyond the head".repeat(number as usize % 3));
        text.into_bytes()
    }

    fn is_unordered(part: &Part) -> bool {
        part.ordered().is_none()
    }

    fn all(chunk: &Chunk, wanted: &[u8]) -> Vec<(RecordId, Position, bool)> {
        (0..chunk.len())
            .filter_map(|number| chunk.get(number))
            .filter(|entry| entry.key == wanted)
            .map(|entry| (entry.id, entry.position, entry.deleted))
            .collect()
    }

    #[test]
    fn a_key_is_found_without_order_as_with_it() {
        let part = Part::from(pile(1, 1_000));
        let ordered = Part::from(Chunk::of(&pile(1, 1_000)));
        for number in (0..LOOKS_MAX as u64 - 3).chain([499, 501, 70_000]) {
            let key = key(number);
            assert!(is_unordered(&part), "{number}");
            let found = part.of_key(&key).map(|chunk| all(&chunk, &key));
            assert_eq!(found.is_some(), ordered.of_key(&key).is_some());
            assert_eq!(found.unwrap_or_default(), all(ordered.chunk(), &key));
        }
    }

    #[test]
    fn entries_between_places_are_counted_without_order_as_with_it() {
        let part = Part::from(pile(1, 1_000));
        let ordered = Part::from(Chunk::of(&pile(1, 1_000)));
        let (short, long) = (key(3), key(71));
        let places: [EntryKey<'_>; 7] = [
            EntryKey::first_of(b""),
            EntryKey::first_of(b"2"),
            EntryKey::first_of(&short),
            EntryKey::new(&short, RecordId(700)),
            EntryKey::first_of(&long),
            EntryKey::new(&long, RecordId::MAX),
            EntryKey::first_of(b"\xFF"),
        ];
        assert_eq!(part.count(places[0], places[6]), 1_000);
        for from in places {
            for to in places {
                assert!(is_unordered(&part));
                assert_eq!(
                    part.count(from, to),
                    ordered.count(from, to),
                    "{from:?} {to:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_looked_at_often_or_read_in_order_or_large_is_put_in_order() {
        let part = Part::from(pile(1, 100));
        for _ in 0..=LOOKS_MAX {
            assert!(part.of_key(b"none").is_none());
        }
        assert!(!is_unordered(&part));
        let part = Part::from(pile(1, 100));
        assert_eq!(part.chunk().len(), 100);
        assert!(!is_unordered(&part));
        let mut part = Arc::new(part);
        Part::shed(&mut part);
        assert!(matches!(part.entries, Entries::Ordered(_)));
        assert_eq!(part.len(), 100);
        assert!(!is_unordered(&Part::from(pile(
            1,
            UNORDERED_MAX as u64 + 1
        ))));
        assert!(!is_unordered(&Part::from(pile(1, 1))));
    }

    #[test]
    fn joined_parts_have_the_entries_and_marks_of_all() {
        let parts = [1, 101, 201].map(|first| Arc::new(Part::from(pile(first, 100))));
        let marks = |part: &Part| part.marks(b'7').clone();
        for are_counted in [false, true] {
            if are_counted {
                parts.iter().for_each(|part| drop(marks(part)));
            }
            let joined = Part::join(&parts);
            assert!(is_unordered(&joined));
            assert_eq!(joined.len(), 300);
            assert_eq!(joined.newest_position(), Position(300));
            assert_eq!(joined.bytes(), parts.iter().map(|part| part.bytes()).sum());
            assert_eq!(marks(&joined), marks(&Part::from(Chunk::of(joined.pile()))));
            assert!(marks(&joined).iter().any(|mark| mark.key == key(7)));
        }
        parts[1].chunk();
        assert!(!is_unordered(&Part::join(&parts)));
    }
}
