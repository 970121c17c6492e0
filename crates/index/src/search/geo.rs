//! Fields of the type `geo`.

use windrow_document::{Document, ValueRef};
use windrow_geo::Shape;
use windrow_interrupt::{Interrupted, WorkCounter};

use super::SearchDefinition;
use super::mapping::GeoMapping;

impl GeoMapping {
    /// Returns the shape of a value. `None` if the field is not indexed for it: it is not GeoJSON,
    /// or it is not a point and shapes are not indexed. Fails if `count_work` does.
    pub(super) fn shape(
        self,
        value: ValueRef<'_>,
        count_work: WorkCounter<'_>,
    ) -> Result<Option<Shape>, Interrupted> {
        let shape = Shape::parse_stored_geojson(value, count_work)?;
        let is_indexed =
            |shape: &Shape| self == GeoMapping::PointsAndShapes || shape.point_key().is_some();
        Ok(shape.filter(is_indexed))
    }
}

impl SearchDefinition {
    /// Returns the shapes of a path of a document that have entries in the index. Fails if
    /// `count_work` does.
    ///
    /// ```
    /// use windrow_document::{ObjectId, array, doc};
    /// use windrow_index::search::SearchDefinition;
    ///
    /// let source = doc! { "mappings": { "fields": { "at": { "type": "geo" } } } };
    /// let id = ObjectId([0; 12]);
    /// let search = SearchDefinition::parse("default", id, 0, 0, source.as_document()).unwrap();
    /// let point = doc! { "type": "Point", "coordinates": [1, 2] };
    /// let document = doc! { "at": (array![point, "Rome"]) };
    /// assert_eq!(search.shapes_at(document.as_document(), "at", &|_| Ok(())).unwrap().len(), 1);
    /// ```
    pub fn shapes_at(
        &self,
        document: Document<'_>,
        path: &str,
        count_work: WorkCounter<'_>,
    ) -> Result<Vec<Shape>, Interrupted> {
        let mut shapes = Ok(Vec::new());
        self.leaves_at(document, path, &mut |field, value| {
            if let (Some(geo), Ok(found)) = (field.geo, &mut shapes) {
                match geo.shape(value, count_work) {
                    Ok(shape) => found.extend(shape),
                    Err(error) => shapes = Err(error),
                }
            }
        });
        shapes
    }
}
