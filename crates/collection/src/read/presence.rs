//! Batched key lookups: all keys of an insert are looked up together.

use windrow_fold::entry::{KeyHead, compare_keys};
use windrow_fold::{HashedKey, keys_in_section};
use windrow_invariant::Bug;

use super::{Reader, ReaderIndex};
use crate::error::Error;
use crate::ids::MapId;

/// Sorted keys with their original indexes.
struct SortedKeys<'k> {
    keys: Vec<HashedKey<'k>>,
    numbers: Vec<usize>,
}

impl<'k> SortedKeys<'k> {
    /// Selects keys by index, and sorts them.
    fn select(keys: &[HashedKey<'k>], is_chosen: impl Fn(usize) -> bool) -> SortedKeys<'k> {
        let numbered = keys.iter().enumerate();
        let chosen = numbered.filter(|(number, _)| is_chosen(*number));
        let headed = chosen.map(|(number, it)| (KeyHead::new(it.key).number(), it, number));
        let mut headed: Vec<_> = headed.collect();
        headed.sort_unstable_by(|(head, it, _), (other_head, other, _)| {
            let heads = head.cmp(other_head);
            heads.then_with(|| compare_keys(it.key, other.key))
        });
        SortedKeys {
            keys: headed.iter().map(|(_, it, _)| **it).collect(),
            numbers: headed.iter().map(|(_, _, number)| *number).collect(),
        }
    }
}

impl Reader {
    /// Returns, for each key, whether the index with this map may contain it. Does not support
    /// readers of transactions.
    pub(crate) fn may_contain(
        &self,
        map: MapId,
        keys: &[HashedKey<'_>],
    ) -> Result<Vec<bool>, Error> {
        let mut possible = vec![false; keys.len()];
        let found = self.0.indexes.iter().find(|it| it.map() == map);
        let ReaderIndex { state } = found.ok_or_else(|| {
            // Answering "absent" for an unknown index would admit duplicates.
            Bug::new(format!("the reader of a key lookup lacks map {map}"))
        })?;
        for generation in self.0.state.generations() {
            generation.mark_possible(&state.index, self.position(), keys, &mut possible);
        }
        let recent = state.index.recent_key_filter().get();
        let known = recent.as_ref().map(|recent| recent.may_contain(keys));
        let is_in_filters = |number: usize| known.as_ref().and_then(|known| known.get(number));
        // The others need no lookup: a generation may contain them.
        let is_undecided = |number: usize| possible.get(number) == Some(&false);
        // The filters cover most sections, and contain few of the keys.
        let covered_keys = SortedKeys::select(keys, |number| {
            is_in_filters(number) == Some(&true) && is_undecided(number)
        });
        let mut undecided_keys = None;
        let mut found: Vec<usize> = Vec::new();
        let past = state.sections.past_at(self.position());
        let present = state.sections.present().iter().map(|it| (it, false));
        for (section, is_past) in past.map(|it| (it, true)).chain(present) {
            let folded = section.descriptor().position;
            let searched = match &recent {
                Some(recent) if !is_past && recent.covers(folded) => &covered_keys,
                _ => undecided_keys.get_or_insert_with(|| SortedKeys::select(keys, is_undecided)),
            };
            let numbers = keys_in_section(section, self.position(), &searched.keys)?;
            found.extend(numbers.iter().map(|it| searched.numbers[*it]));
        }
        found.into_iter().for_each(|number| possible[number] = true);
        Ok(possible)
    }
}
