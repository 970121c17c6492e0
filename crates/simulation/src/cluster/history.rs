//! What the servers have written, and which of it is in the shared log.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use windrow_collection::{Engine, Error};
use windrow_storage::Position;

use crate::model::{Documents, Model, ModelCollection};
use crate::reads::documents_of;

/// Identifies a server while it is the primary.
pub(crate) type WriterId = usize;

/// The documents of all collections that are not empty.
pub(crate) type Content = BTreeMap<String, Documents>;

/// The states of the database.
#[derive(Default)]
pub(crate) struct History {
    branches: Vec<Branch>,
    /// The states that are known to be in the shared log.
    chain: BTreeMap<Position, Arc<Model>>,
}

/// The states that one primary has made.
struct Branch {
    /// The position up to which the primary has read the shared log before it took it over.
    base: Position,
    states: BTreeMap<Position, Arc<Model>>,
}

impl Branch {
    /// Returns the positions up to `until` that the primary has written itself.
    fn after_base(&self, until: Position) -> (Bound<Position>, Bound<Position>) {
        (
            Bound::Excluded(self.base),
            Bound::Included(until.max(self.base)),
        )
    }
}

impl History {
    /// Begins the states of a new primary, which has taken over the shared log at `base` and has
    /// `content` at `written`. It can have writes of its own from before that were never uploaded.
    ///
    /// # Panics
    /// Panics if no primary has made a state with this content.
    pub fn begin(&mut self, base: Position, written: Position, content: &Content) -> WriterId {
        let known = self.chain.range(..=base).next_back();
        let is_known = known.map_or(content.is_empty(), |(_, it)| content_of(it) == *content);
        let states = if is_known {
            let model = known.map(|(_, model)| model.clone());
            BTreeMap::from([(base, model.unwrap_or_default())])
        } else {
            let Some(writer) = self.writer_of(base, written, content) else {
                self.report_difference(written, content);
            };
            self.confirm(writer, base);
            let states = self.branches[writer].states.range(..=written);
            states.map(|(at, model)| (*at, model.clone())).collect()
        };
        self.branches.push(Branch { base, states });
        self.branches.len() - 1
    }

    /// Returns the newest state of a primary.
    pub fn newest(&self, writer: WriterId) -> &Model {
        let newest = self.branches[writer].states.last_key_value();
        newest.expect("a branch begins with a state").1
    }

    /// Adds a state of a primary.
    pub fn add(&mut self, writer: WriterId, position: Position, model: Model) {
        self.branches[writer]
            .states
            .insert(position, Arc::new(model));
    }

    /// Records that the shared log has all states of a primary up to a position. Returns how many
    /// of them were not known to be there.
    ///
    /// # Panics
    /// Panics if the shared log is known to have other states.
    pub fn confirm(&mut self, writer: WriterId, until: Position) -> u64 {
        let branch = &self.branches[writer];
        if let Some(position) = self.contradiction(branch, until) {
            panic!("two primaries have written position {position}");
        }
        let mut added = 0;
        for (position, model) in branch.states.range(branch.after_base(until)) {
            if self.chain.insert(*position, model.clone()).is_none() {
                added += 1;
            }
        }
        added
    }

    /// Returns the newest position that is known to be in the shared log.
    pub fn confirmed(&self) -> Position {
        let newest = self.chain.last_key_value();
        newest.map_or(Position::ZERO, |(position, _)| *position)
    }

    /// Returns the state that a server has read from the shared log up to `position`.
    ///
    /// # Panics
    /// Panics if no primary has made a state with this content, or if the shared log is known to
    /// have another one.
    pub fn observe(&mut self, position: Position, content: &Content) -> Arc<Model> {
        let known = self.chain.range(..=position).next_back();
        if let Some((_, model)) = known
            && content_of(model) == *content
        {
            return model.clone();
        }
        if known.is_none() && content.is_empty() {
            return Arc::default();
        }
        let Some(writer) = self.writer_of(position, position, content) else {
            self.report_difference(position, content);
        };
        self.confirm(writer, position);
        let (_, model) = self.chain.range(..=position).next_back().expect("a state");
        assert!(
            content_of(model) == *content,
            "position {position} has two states"
        );
        model.clone()
    }

    /// Returns the first position up to `until` at which the shared log is known to have another
    /// state than a primary has made.
    fn contradiction(&self, branch: &Branch, until: Position) -> Option<Position> {
        let mut known = self.chain.range(branch.after_base(until));
        let differs = |(position, model): &(&Position, &Arc<Model>)| {
            let own = branch.states.get(position);
            own.is_none_or(|own| content_of(own) != content_of(model))
        };
        known.find(differs).map(|(position, _)| *position)
    }

    /// Returns the newest primary that has made `content` up to a position. Several can have made
    /// it, for example by removing all documents: then one whose states up to `shared` are not
    /// known to be missing in the shared log.
    fn writer_of(
        &self,
        shared: Position,
        position: Position,
        content: &Content,
    ) -> Option<WriterId> {
        let has_made = |writer: &WriterId| {
            let states = &self.branches[*writer].states;
            let state = states.range(..=position).next_back();
            state.is_some_and(|(_, model)| content_of(model) == *content)
        };
        let is_possible = |writer: &WriterId| {
            self.contradiction(&self.branches[*writer], shared)
                .is_none()
        };
        let writers = || (0..self.branches.len()).rev().filter(has_made);
        writers().find(is_possible).or_else(|| writers().next())
    }

    fn report_difference(&self, position: Position, content: &Content) -> ! {
        let counts = |content: &Content| -> Vec<(String, usize)> {
            let count = |(name, documents): (&String, &Documents)| (name.clone(), documents.len());
            content.iter().map(count).collect()
        };
        let known = self.chain.range(..=position).next_back();
        let branches = self.branches.iter().map(|branch| {
            let state = branch.states.range(..=position).next_back();
            state.map(|(at, model)| (branch.base, *at, counts(&content_of(model))))
        });
        panic!(
            "a server has {:?} at position {position}; the shared log has {:?}, primaries had {:?}",
            counts(content),
            known.map(|(at, model)| (at, counts(&content_of(model)))),
            branches.collect::<Vec<_>>()
        );
    }

    /// Checks the position of the last server.
    ///
    /// # Panics
    /// Panics if the shared log was longer.
    pub fn check_end(&self, position: Position) {
        let confirmed = self.confirmed();
        assert!(
            position >= confirmed,
            "the shared log ends at {position}, and {confirmed} was acknowledged"
        );
    }
}

/// Returns the documents of a state.
pub(super) fn content_of(model: &Model) -> Content {
    let with_documents =
        |(name, it): (&String, &ModelCollection)| (name.clone(), it.documents.clone());
    model
        .iter()
        .map(with_documents)
        .filter(|(_, documents)| !documents.is_empty())
        .collect()
}

/// Returns the documents of the collections that are not empty.
pub(super) fn content_of_engine(engine: &Engine) -> Result<Content, Error> {
    let mut content = documents_of(engine)?;
    content.retain(|_, documents| !documents.is_empty());
    Ok(content)
}
