//! The ids of collections and maps.

use std::fmt;

use windrow_document::Value;

/// The id of a collection. An id is never reused, not even for a collection of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CollectionId(pub u64);

/// The UUID of a collection. Another collection of the same name has another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CollectionUuid(pub [u8; 16]);

impl CollectionUuid {
    /// Returns the UUID as binary data of the subtype 4.
    pub fn to_value(self) -> Value {
        Value::Binary {
            subtype: 4,
            bytes: self.0.to_vec(),
        }
    }
}

/// The id of a map: the documents by record id, or the entries of an index. Collections and maps
/// take their ids from one counter, and no id is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MapId(pub u64);

/// The least id that no collection and no map has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct NextId(pub u64);

impl NextId {
    /// The next id in a new database directory.
    pub const FIRST: NextId = NextId(1);
}

impl fmt::Display for CollectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for MapId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
