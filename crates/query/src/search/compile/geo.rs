//! Compiles `geoWithin` and `geoShape`.

use windrow_geo::{SearchArea, ShapeQuery};
use windrow_index::search::GeoMapping;
use windrow_search::Query;

use super::{Compiler, paths_shown};
use crate::Error;
use crate::search::options::SearchPath;
use crate::search::source::{AreaFilter, ShapeFilter, ValueFilter};

impl Compiler<'_> {
    /// Returns the paths of the fields with points.
    pub(super) fn point_paths(&self, paths: &[SearchPath]) -> Result<Vec<String>, Error> {
        self.geo_paths(paths, |_| true)
    }

    fn geo_paths(
        &self,
        paths: &[SearchPath],
        is_searched: impl Fn(GeoMapping) -> bool,
    ) -> Result<Vec<String>, Error> {
        let paths = self.resolve(paths)?.into_iter().map(|field| field.path);
        let geo = |path: &str| self.definition.field(path).and_then(|field| field.geo);
        Ok(paths
            .filter(|path| geo(path).is_some_and(&is_searched))
            .collect())
    }

    pub(super) fn geo_within(
        &mut self,
        paths: &[SearchPath],
        area: &SearchArea,
    ) -> Result<Query, Error> {
        let found = self.point_paths(paths)?;
        if found.is_empty() {
            return Ok(Query::Nothing);
        }
        let label = format!("geoWithin({}, {})", paths_shown(paths), area.source());
        let filter = AreaFilter {
            paths: found,
            area: area.clone(),
        };
        Ok(self.filter(ValueFilter::InArea(filter), label))
    }

    pub(super) fn geo_shape(
        &mut self,
        paths: &[SearchPath],
        query: &ShapeQuery,
    ) -> Result<Query, Error> {
        let found = self.geo_paths(paths, |geo| geo == GeoMapping::PointsAndShapes)?;
        if found.is_empty() {
            return Ok(Query::Nothing);
        }
        let label = format!(
            "geoShape({}, {:?}, {})",
            paths_shown(paths),
            query.relation(),
            query.source()
        );
        let filter = ShapeFilter {
            paths: found,
            query: query.clone(),
            definition: self.definition.clone(),
        };
        Ok(self.filter(ValueFilter::Related(filter), label))
    }
}
