//! Compiles `near`: numbers, dates or points whose scores follow from their distance from an
//! origin.

use windrow_document::ValueRef;
use windrow_geo::SearchOrigin;
use windrow_search::{Nearness, Query};

use super::{Compiler, ResolvedField, key_range, paths_shown};
use crate::Error;
use crate::search::operator::NearOrigin;
use crate::search::options::SearchPath;
use crate::search::source::{RecordValues, ValueRange, number_of};

impl Compiler<'_> {
    pub(super) fn near(
        &mut self,
        paths: &[SearchPath],
        origin: &NearOrigin,
        pivot: f64,
    ) -> Result<Query, Error> {
        match origin {
            NearOrigin::Value(origin) => self.near_value(paths, origin.as_ref(), pivot),
            NearOrigin::Point(origin) => self.near_point(paths, *origin, pivot),
        }
    }

    fn near_value(
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
            number: self.value_number(RecordValues::Numbers(ranges)),
            nearness: Nearness {
                origin: number,
                pivot,
            },
            label: format!("near({}, {origin}, {pivot})", paths_shown(paths)),
        })
    }

    fn near_point(
        &mut self,
        paths: &[SearchPath],
        origin: SearchOrigin,
        pivot: f64,
    ) -> Result<Query, Error> {
        let found = self.point_paths(paths)?;
        if found.is_empty() {
            return Ok(Query::Nothing);
        }
        let values = RecordValues::Distances {
            paths: found,
            origin,
        };
        // The values are distances already.
        let nearness = Nearness { origin: 0.0, pivot };
        Ok(Query::Near {
            number: self.value_number(values),
            nearness,
            label: format!("near({}, {origin}, {pivot})", paths_shown(paths)),
        })
    }
}
