//! Compiles `near`: numbers or dates whose scores follow from their distance from an origin.

use windrow_document::ValueRef;
use windrow_search::Query;

use super::{Compiler, all_of_type, paths_shown};
use crate::Error;
use crate::search::options::SearchPath;
use crate::search::source::NearValues;

impl Compiler<'_> {
    pub(super) fn near(
        &mut self,
        paths: &[SearchPath],
        origin: ValueRef<'_>,
        pivot: f64,
    ) -> Result<Query, Error> {
        let mut ranges = Vec::new();
        for (path, _) in self.resolve(paths)? {
            let range = self.definition.field(&path);
            let range = range.and_then(|mapping| all_of_type(&path, mapping, origin));
            ranges.extend(range.map(|range| (path, range)));
        }
        if ranges.is_empty() {
            return Ok(Query::Nothing);
        }
        let label = format!("near({}, {origin}, {pivot})", paths_shown(paths));
        let origin = match origin {
            ValueRef::DateTime(millis) => millis as f64,
            number => number.as_f64().unwrap_or_default(),
        };
        self.conditions.nears.push(NearValues {
            ranges,
            origin,
            pivot,
        });
        Ok(Query::Scored {
            number: self.conditions.nears.len() - 1,
            label,
        })
    }
}
