//! The fields and metadata that an expression reads. Covered plans and stages that fetch only what
//! is used need them.

use std::collections::BTreeSet;

use super::context::VariableSource;
use super::field_path::VariablePath;

/// The parts of a document that a filter, an expression or a stage reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependencies {
    /// Dotted paths.
    pub paths: BTreeSet<String>,
    /// `true` if the whole document is read, as by `$$ROOT`.
    pub whole: bool,
    /// `{$meta: "textScore"}`.
    pub text_score: bool,
    /// `{$meta: "geoNearDistance"}`, `{$meta: "geoNearPoint"}`.
    pub nearest: bool,
    /// `{$meta: "score"}`.
    pub score: bool,
    /// `{$meta: "scoreDetails"}`.
    pub score_details: bool,
    /// Metadata of searches only, such as `{$meta: "searchScore"}`.
    pub search: bool,
    /// `{$meta: "sortKey"}`.
    pub sort_key: bool,
    /// `{$meta: "indexKey"}`.
    pub index_key: bool,
    /// `{$meta: "recordId"}`.
    pub record_id: bool,
    /// Variables that are defined outside of the expression.
    pub variables: BTreeSet<String>,
    /// `true` if an evaluation can return different values for the same document, as `$rand` does.
    pub random: bool,
}

impl Dependencies {
    /// Adds a dotted path.
    pub fn add(&mut self, path: &str) {
        self.paths.insert(path.to_owned());
    }

    /// Adds all dependencies of another set.
    pub fn extend(&mut self, other: Dependencies) {
        self.paths.extend(other.paths);
        self.variables.extend(other.variables);
        self.whole |= other.whole;
        self.text_score |= other.text_score;
        self.nearest |= other.nearest;
        self.score |= other.score;
        self.score_details |= other.score_details;
        self.search |= other.search;
        self.sort_key |= other.sort_key;
        self.index_key |= other.index_key;
        self.record_id |= other.record_id;
        self.random |= other.random;
    }

    /// Adds the metadata with this `$meta` name.
    pub(crate) fn add_meta(&mut self, name: &str) {
        match name {
            "geoNearDistance" | "geoNearPoint" => self.nearest = true,
            "score" => self.score = true,
            "scoreDetails" => self.score_details = true,
            "searchScore"
            | "searchHighlights"
            | "searchScoreDetails"
            | "searchSequenceToken"
            | "vectorSearchScore" => self.search = true,
            "sortKey" => self.sort_key = true,
            "indexKey" => self.index_key = true,
            "recordId" => self.record_id = true,
            _ => self.text_score = true,
        }
    }

    /// Returns `true` if `$meta` values about the access path are read.
    pub fn needs_origin(&self) -> bool {
        self.sort_key || self.index_key || self.record_id
    }

    pub(crate) fn add_path(&mut self, path: &VariablePath) {
        match &path.source {
            VariableSource::Current | VariableSource::Root if path.names.is_empty() => {
                self.whole = true
            }
            VariableSource::Current | VariableSource::Root => self.add(&path.names.join(".")),
            VariableSource::Outer(name) => {
                self.variables.insert(name.to_string());
            }
            VariableSource::Now
            | VariableSource::UserRoles
            | VariableSource::Remove
            | VariableSource::Local(_) => {}
        }
    }
}
