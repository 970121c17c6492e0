//! The first records of a sorted result.
//!
//! There are two methods:
//!
//! - By documents: the sort key of each matching record is computed. Fields are read from its
//!   document.
//! - By the keys of the index, if that is cheaper: see [`KeyOrder`]. The scores of the first
//!   records are computed afterwards.

use windrow_document::Document;
use windrow_search::{Hit, IdSet, Matches, all, collect};

use super::sort::{FirstHits, KeyOrder, SearchSort, SortRequest, SortedHit};
use super::{OpenSearch, Page};
use crate::Error;
use crate::row::{Interrupt, Pace};
use crate::source::RecordId;

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
        if let Some(order) = order.filter(|_| !first.is_reversed()) {
            let (matched, postings) = self.run(interrupt, |node, stop| {
                let postings = node.postings();
                Ok((collect(node, stop)?, postings))
            })?;
            let request = self.sort_request(&matched, after);
            if order.is_cheaper(&request, &first)? {
                return self.sorted_by_keys(&order, &request, first, postings, interrupt);
            }
        }
        self.sorted_by_documents(sort, first, after, interrupt)
    }

    fn sort_request<'r>(&'r self, matched: &'r IdSet, after: Option<&'r [u8]>) -> SortRequest<'r> {
        SortRequest {
            source: &*self.source,
            index: self.number,
            matched,
            count: matched.len(),
            after,
        }
    }

    fn sorted_by_documents(
        &self,
        sort: &SearchSort,
        mut first: FirstHits,
        after: Option<&[u8]>,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let (mut outcome, mut pace) = (Ok(()), Pace::default());
        let mut offer = |hit: Hit| -> Result<(), Error> {
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
        };
        let postings_read = self.run(interrupt, |node, stop| {
            let postings = node.postings();
            all(node, stop, |hit| {
                if outcome.is_ok() {
                    outcome = offer(hit);
                }
            })?;
            Ok(postings)
        })?;
        outcome?;
        Ok(Page {
            has_more: first.has_more,
            hits: first.into_hits(),
            postings_read,
            postings_skipped: 0,
        })
    }

    fn sorted_by_keys(
        &self,
        order: &KeyOrder<'_>,
        request: &SortRequest<'_>,
        mut first: FirstHits,
        postings: u64,
        interrupt: &dyn Interrupt,
    ) -> Result<Page, Error> {
        let keys_read = order.read(request, &mut first, interrupt)?;
        let has_more = first.has_more;
        let mut hits = first.into_hits();
        self.set_scores(&mut hits, interrupt)?;
        Ok(Page {
            hits,
            has_more,
            postings_read: postings + keys_read,
            postings_skipped: 0,
        })
    }

    /// Computes the scores of records that match.
    fn set_scores(&self, hits: &mut [SortedHit], interrupt: &dyn Interrupt) -> Result<(), Error> {
        // Lists can only be read forward.
        let mut in_order: Vec<&mut SortedHit> = hits.iter_mut().collect();
        in_order.sort_unstable_by_key(|sorted| sorted.hit.id);
        self.run(interrupt, |node, _| {
            for sorted in in_order {
                if node.seek(sorted.hit.id) == sorted.hit.id {
                    sorted.hit.score = node.score();
                }
            }
            Ok(())
        })
    }
}
