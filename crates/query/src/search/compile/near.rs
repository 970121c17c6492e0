//! Compiles `near`: numbers or dates whose scores follow from their distance from an origin.

use windrow_document::ValueRef;
use windrow_search::{Nearness, Query};

use super::{Compiler, ResolvedField, key_range, paths_shown};
use crate::Error;
use crate::search::options::SearchPath;
use crate::search::source::{ValueRange, number_of};

impl Compiler<'_> {
    pub(super) fn near(
        &mut self,
        paths: &[SearchPath],
        origin: ValueRef<'_>,
        pivot: f64,
    ) -> Result<Query, Error> {
        let mut ranges = Vec::new();
        for ResolvedField { path, .. } in self.resolve(paths)? {
            let keys = self.definition.field(&path);
            let keys = keys.and_then(|mapping| key_range(&path, mapping, origin, None, None));
            ranges.extend(keys.map(|keys| ValueRange { path, keys }));
        }
        let (false, Some(number)) = (ranges.is_empty(), number_of(origin)) else {
            return Ok(Query::Nothing);
        };
        Ok(Query::Near {
            number: self.value_number(ranges),
            nearness: Nearness {
                origin: number,
                pivot,
            },
            label: format!("near({}, {origin}, {pivot})", paths_shown(paths)),
        })
    }
}
