//! The first records of a sorted result.
//!
//! - If the order is that of one field, the matching records are collected first. Then the field is
//!   read for them, from the keys of the index ([`KeyOrder`]) or from their documents, whichever is
//!   cheaper. The scores of the first records are computed afterwards.
//! - Otherwise the sort key of each matching record is computed while the records are found.

use windrow_document::Document;
use windrow_interrupt::Interrupt;
use windrow_search::{END, Hit, Ids, Matches, Scores, all, collect};

use super::sort::{FirstHits, KeyOrder, SearchSort, SortRequest, SortedHit};
use super::{OpenSearch, Page};
use crate::Error;
use crate::row::Pace;
use crate::source::{Direction, RecordId};

impl OpenSearch {
    /// Returns the first records in the order of `sort` that come after the sort key `after`.
    /// `first` has no records yet.
    pub(super) fn sorted(
        &self,
        sort: &SearchSort,
        first: FirstHits,
        after: Option<&[u8]>,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let order = sort.key_order(&self.definition);
        match order.filter(|_| first.direction() == Direction::Forward) {
            Some(order) => self.sorted_by_field(&order, sort, first, after, interrupt),
            None => self.sorted_by_all(sort, first, after, interrupt),
        }
    }

    fn sorted_by_field(
        &self,
        order: &KeyOrder<'_>,
        sort: &SearchSort,
        mut first: FirstHits,
        after: Option<&[u8]>,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let (matched, mut read) = self.run(interrupt, Scores::Omitted, |node| {
            let postings = node.postings();
            Ok((collect(node, interrupt)?, postings))
        })?;
        let request = SortRequest {
            source: &*self.source,
            index: self.number,
            count: matched.len(),
            matched: &matched,
            after,
        };
        if order.is_cheaper(&request, &first)? {
            read += order.read(&request, &mut first, interrupt)?;
        } else {
            let (mut pace, mut ids) = (Pace::default(), matched.into_ids());
            while ids.id() != END {
                let hit = Hit {
                    id: ids.id(),
                    score: 0.0,
                };
                self.offer(sort, hit, after, &mut first, &mut pace, interrupt)?;
                ids.next();
            }
        }
        let mut page = page_of(first, read);
        self.set_scores(&mut page.hits, interrupt)?;
        Ok(page)
    }

    fn sorted_by_all(
        &self,
        sort: &SearchSort,
        mut first: FirstHits,
        after: Option<&[u8]>,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let (mut outcome, mut pace) = (Ok(()), Pace::default());
        let postings_read = self.run(interrupt, Scores::Computed, |node| {
            let postings = node.postings();
            all(node, interrupt, |hit| {
                if outcome.is_ok() {
                    outcome = self.offer(sort, hit, after, &mut first, &mut pace, interrupt);
                }
            })?;
            Ok(postings)
        })?;
        outcome?;
        Ok(page_of(first, postings_read))
    }

    /// Adds a matching record to the first ones, if it comes after the sort key `after`.
    fn offer(
        &self,
        sort: &SearchSort,
        hit: Hit,
        after: Option<&[u8]>,
        first: &mut FirstHits,
        pace: &mut Pace,
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        let document = if sort.reads_documents() {
            self.source.get(RecordId(hit.id))?
        } else {
            None
        };
        pace.step_over(document.as_ref().map_or(0, |bytes| bytes.len()), interrupt)?;
        let document = document.as_deref().map(Document::from_validated);
        let key = sort.key(&self.definition, hit, document.unwrap_or(Document::EMPTY));
        if after.is_none_or(|after| first.comes_after(&key, after)) {
            first.offer(SortedHit { hit, key });
        }
        Ok(())
    }

    /// Computes the scores of records that match.
    fn set_scores(&self, hits: &mut [SortedHit], interrupt: &dyn Interrupt) -> Result<(), Error> {
        // Lists can only be read forward.
        let mut in_order: Vec<&mut SortedHit> = hits.iter_mut().collect();
        in_order.sort_unstable_by_key(|sorted| sorted.hit.id);
        self.run(interrupt, Scores::Computed, |node| {
            for sorted in in_order {
                if node.seek(sorted.hit.id) == sorted.hit.id {
                    sorted.hit.score = node.score();
                }
            }
            Ok(())
        })
    }
}

fn page_of(first: FirstHits, postings_read: u64) -> Page {
    Page {
        has_more: first.has_more,
        total: None,
        hits: first.into_hits(),
        postings_read,
        postings_skipped: 0,
    }
}
