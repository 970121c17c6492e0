//! Finds the files to read again because settings changed: a converter was added, removed,
//! installed or changed, or the languages of a folder changed.
//!
//! The document of a run in `files.runs` contains its settings. If those of the next run differ,
//! all affected files get the marker of an unfinished file, whether or not they are below the
//! folders of this run. A file with a marker counts as changed until it is read. The settings are
//! stored at the end of the run: if the run is interrupted, the next one sets the same markers
//! again.

use std::collections::BTreeSet;
use std::path::Path;

use windrow_converters::SettingsEntry;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};

use crate::markers::insert_markers;
use crate::store::{RUNS_NAME, Store, StoreCollection, StoreError};
use crate::stored_document::{FailureDocument, now_ms};

/// The field of a run that contains the settings.
pub(crate) const FIELD: &str = "settings";

/// The name of the setting with the languages of a folder.
pub const LANGUAGES: &str = "languages";

/// Marks the files that are affected by the changes since the last run.
pub(crate) fn mark_affected_files(
    store: &dyn Store,
    entries: &[SettingsEntry],
) -> Result<(), StoreError> {
    let known = read_entries(store)?;
    let changed = AffectedFiles::new(&known, entries);
    if changed.names.is_empty() {
        return Ok(());
    }
    let mut paths = BTreeSet::new();
    for collection in StoreCollection::ALL {
        let fields = [
            "_id",
            "path",
            "inner",
            "kind",
            "converter",
            "format",
            "class",
        ];
        store.visit_all(collection.name(), &fields, &mut |document| {
            let path = document.get("path").and_then(ValueRef::as_str);
            if let Some(path) = path.filter(|_| changed.affects(document)) {
                paths.insert(path.to_owned());
            }
        })?;
    }
    let marker = |path| FailureDocument::new_outdated(path, now_ms());
    insert_markers(store, paths.into_iter().map(marker))
}

/// Returns the settings as a field of a run.
pub(crate) fn encode(entries: &[SettingsEntry]) -> ArrayBuf {
    let texts = |texts: &[String]| -> ArrayBuf {
        texts
            .iter()
            .map(|text| Value::String(text.clone()))
            .collect()
    };
    let encode = |entry: &SettingsEntry| {
        Value::Document(doc! {
            "name": (entry.name.as_str()), "extensions": (texts(&entry.extensions)),
            "formats": (texts(&entry.formats)), "text": (entry.text.as_str()),
            "folder": (entry.folder.clone().map_or(Value::Null, Value::String)),
        })
    };
    entries.iter().map(encode).collect()
}

/// Returns the settings of the newest run that has any.
fn read_entries(store: &dyn Store) -> Result<Vec<SettingsEntry>, StoreError> {
    let (mut newest, mut entries) = (i64::MIN, Vec::new());
    store.visit_all(RUNS_NAME, &["started", FIELD], &mut |run| {
        let Some(ValueRef::DateTime(started)) = run.get("started") else {
            return;
        };
        let recorded = run.get(FIELD).and_then(ValueRef::as_array);
        if let Some(recorded) = recorded.filter(|_| started >= newest) {
            newest = started;
            let documents = recorded.into_iter().filter_map(ValueRef::as_document);
            entries = documents.filter_map(decode).collect();
        }
    })?;
    Ok(entries)
}

fn decode(entry: Document<'_>) -> Option<SettingsEntry> {
    let texts = |name: &str| -> Option<Vec<String>> {
        let texts = entry.get(name)?.as_array()?.into_iter();
        Some(
            texts
                .filter_map(ValueRef::as_str)
                .map(str::to_owned)
                .collect(),
        )
    };
    Some(SettingsEntry {
        name: entry.get("name")?.as_str()?.to_owned(),
        extensions: texts("extensions")?,
        formats: texts("formats")?,
        folder: entry
            .get("folder")
            .and_then(ValueRef::as_str)
            .map(str::to_owned),
        text: entry.get("text")?.as_str()?.to_owned(),
    })
}

/// The files that are affected by changed settings.
#[derive(Debug, Default)]
struct AffectedFiles {
    /// Media types of converters, or `ocr`.
    names: BTreeSet<String>,
    extensions: BTreeSet<String>,
    formats: BTreeSet<String>,
    /// Folders whose files are all affected.
    folders: BTreeSet<String>,
}

impl AffectedFiles {
    fn new(known: &[SettingsEntry], entries: &[SettingsEntry]) -> Self {
        let removed = known.iter().filter(|entry| !entries.contains(entry));
        let added = entries.iter().filter(|entry| !known.contains(entry));
        let mut affected = AffectedFiles::default();
        for entry in removed.chain(added) {
            affected.names.insert(entry.name.clone());
            affected.extensions.extend(entry.extensions.iter().cloned());
            affected.formats.extend(entry.formats.iter().cloned());
            affected.folders.extend(entry.folder.iter().cloned());
        }
        affected
    }

    fn has_programs(&self) -> bool {
        self.names.iter().any(|name| name != LANGUAGES)
    }

    /// Returns `true` if reading the file of a stored document may have another result now.
    fn affects(&self, document: Document<'_>) -> bool {
        let text = |name: &str| document.get(name).and_then(ValueRef::as_str);
        let has = |set: &BTreeSet<String>, name| text(name).is_some_and(|it| set.contains(it));
        let name = text("inner").or_else(|| text("path")).unwrap_or_default();
        let by_program =
            self.has_programs() && matches!(text("class"), Some("missing_converter" | "converter"));
        let by_recognition = self.names.contains("ocr")
            && (text("kind") == Some("image") || text("class") == Some("no_text"));
        let is_below =
            |folder: &String| Path::new(text("path").unwrap_or_default()).starts_with(folder);
        by_program
            || by_recognition
            || self.folders.iter().any(is_below)
            || has(&self.names, "converter")
            || has(&self.formats, "format")
            || find_extension(name).is_some_and(|it| self.extensions.contains(&it))
    }
}

/// Returns the lower-case extension of a file or member. The numbers of parts (`@2`) and of members
/// with the same name (`~2`) are ignored.
fn find_extension(name: &str) -> Option<String> {
    let (_, extension) = name.rsplit('/').next()?.rsplit_once('.')?;
    let end = extension.find(['@', '~']).unwrap_or(extension.len());
    Some(extension.get(..end)?.to_lowercase())
}

/// Adds the settings to the document of a run.
pub(crate) fn record(run: &mut DocumentBuf, entries: &[SettingsEntry]) {
    run.push(FIELD, encode(entries));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, extension: &str, text: &str) -> SettingsEntry {
        SettingsEntry {
            name: name.into(),
            extensions: vec![extension.into()],
            formats: vec![format!("{extension} file")],
            folder: None,
            text: text.into(),
        }
    }

    #[test]
    fn settings_are_stored() {
        let entries = [entry("a/b", "foo", "x"), entry("c/d", "bar", "y")];
        let encoded = encode(&entries);
        let documents = encoded
            .as_array()
            .into_iter()
            .filter_map(ValueRef::as_document);
        let decoded: Vec<SettingsEntry> = documents.filter_map(decode).collect();
        assert_eq!(decoded, entries);
    }

    fn check(document: DocumentBuf, expected: bool) {
        let known = [entry("a/foo", "foo", "1"), entry("a/bar", "bar", "1")];
        let now = [
            entry("a/foo", "foo", "2"),
            entry("a/bar", "bar", "1"),
            entry("ocr", "png", "1"),
        ];
        let affected = AffectedFiles::new(&known, &now);
        assert_eq!(
            affected.affects(document.as_document()),
            expected,
            "{document}"
        );
    }

    #[test]
    fn changed_settings_affect_their_files() {
        check(doc! { "path": "/d/a.Foo" }, true);
        check(doc! { "path": "/d/a.bar" }, false);
        check(doc! { "path": "/d/a.zip", "inner": "!/x.foo@2" }, true);
        check(doc! { "path": "/d.foo/a" }, false);
        check(doc! { "path": "/d/a", "converter": "a/foo" }, true);
        check(doc! { "path": "/d/a", "converter": "a/bar" }, false);
        check(doc! { "path": "/d/a", "format": "foo file" }, true);
        check(doc! { "path": "/d/a", "class": "missing_converter" }, true);
        check(doc! { "path": "/d/a", "class": "malformed" }, false);
        check(doc! { "path": "/d/a", "kind": "image" }, true);
        check(doc! { "path": "/d/a.pdf", "class": "no_text" }, true);
    }

    #[test]
    fn settings_of_a_folder_affect_its_files() {
        let english = SettingsEntry {
            folder: Some("/d/e".into()),
            ..entry("languages", "", "en")
        };
        let affected = AffectedFiles::new(&[], std::slice::from_ref(&english));
        for (path, expected) in [("/d/e/f", true), ("/d/ef", false), ("/d", false)] {
            let document = doc! { "path": (path) };
            assert_eq!(affected.affects(document.as_document()), expected, "{path}");
        }
        let encoded = encode(std::slice::from_ref(&english));
        let documents = encoded
            .as_array()
            .into_iter()
            .filter_map(ValueRef::as_document);
        assert_eq!(documents.filter_map(decode).collect::<Vec<_>>(), [english]);
    }

    #[test]
    fn equal_settings_affect_nothing() {
        let entries = [entry("a/foo", "foo", "1")];
        assert!(AffectedFiles::new(&entries, &entries).names.is_empty());
    }
}
