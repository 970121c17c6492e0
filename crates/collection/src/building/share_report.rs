//! The reports of the builder of a share: its progress, and at the end the sections that it has
//! written.

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_fold::SectionDescriptor;

use crate::catalog::rows::MapSection;
use crate::ids::MapId;

/// A report of the builder of a share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShareReport {
    /// The documents read so far.
    pub documents: u64,
    pub state: ShareState,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShareState {
    /// The share is being built.
    InProgress,
    /// The run is in the object store.
    Built(BuiltShare),
    /// The builder has given up.
    Failed,
}

/// The sections of a completed share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BuiltShare {
    /// The number of keys of each index.
    pub keys: Vec<u64>,
    pub sections: Vec<MapSection>,
}

impl ShareReport {
    pub fn encode(&self) -> Vec<u8> {
        let documents = self.documents as i64;
        let report = match &self.state {
            ShareState::InProgress => doc! { "state": "building", "documents": documents },
            ShareState::Failed => doc! { "state": "failed", "documents": documents },
            ShareState::Built(BuiltShare { keys, sections }) => {
                let keys: Vec<i64> = keys.iter().map(|keys| *keys as i64).collect();
                let section = |MapSection { map, descriptor }: &MapSection| {
                    let bytes = descriptor.encode();
                    doc! { "map": (map.0 as i64), "section": (Value::Binary { subtype: 0, bytes }) }
                };
                let sections: Vec<DocumentBuf> = sections.iter().map(section).collect();
                doc! { "state": "built", "documents": documents, "keys": keys, "sections": sections }
            }
        };
        report.into_bytes()
    }

    /// Returns `None` if these bytes are not a report.
    pub fn decode(bytes: &[u8]) -> Option<ShareReport> {
        let report = Document::from_bytes(bytes).ok()?;
        let documents = report.get("documents")?.as_whole()? as u64;
        let state = match report.get("state")?.as_str()? {
            "building" => ShareState::InProgress,
            "failed" => ShareState::Failed,
            "built" => ShareState::Built(BuiltShare::read(report)?),
            _ => return None,
        };
        Some(ShareReport { documents, state })
    }
}

impl BuiltShare {
    fn read(report: Document<'_>) -> Option<BuiltShare> {
        let keys = report.get("keys")?.as_array()?;
        let keys = keys.iter().map(|it| Some(it.as_whole()? as u64));
        let sections = report.get("sections")?.as_array()?;
        let section = |value: ValueRef<'_>| {
            let one = value.as_document()?;
            let ValueRef::Binary { bytes, .. } = one.get("section")? else {
                return None;
            };
            let map = MapId(one.get("map")?.as_whole()? as u64);
            let descriptor = SectionDescriptor::decode(bytes)?;
            Some(MapSection { map, descriptor })
        };
        Some(BuiltShare {
            keys: keys.collect::<Option<_>>()?,
            sections: sections.iter().map(section).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_back() {
        let built = BuiltShare {
            keys: vec![7, 0],
            sections: Vec::new(),
        };
        for state in [
            ShareState::InProgress,
            ShareState::Failed,
            ShareState::Built(built),
        ] {
            let report = ShareReport {
                documents: 12,
                state,
            };
            assert_eq!(ShareReport::decode(&report.encode()), Some(report));
        }
        assert_eq!(ShareReport::decode(b""), None);
        assert_eq!(
            ShareReport::decode(doc! { "state": "built" }.as_bytes()),
            None
        );
    }
}
