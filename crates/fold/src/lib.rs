//! A map over the log: a tail in memory, sections of sorted blocks in runs, merges, cursors and
//! snapshots.
//!
//! An [`Entry`] is a key, a record id, the position that made it, whether it is deleted, and a
//! payload; a map holds entries ordered by key, then record id, then position, newest first. Every
//! map of Windrow has this form: documents (empty key, the document as payload), `_id`s and
//! indexes (key bytes, record ids).
//!
//! - A [`Pile`] has entries in memory as they came, a [`Chunk`] in order. A [`Part`] is a pile until
//!   somebody needs its order; a [`Tail`] holds parts of geometrically growing size.
//! - A [`Section`] is a sorted stretch in a run file: blocks, fences, filters. What only those see who read
//!   at an old position stands in past [`sections`].
//! - A [`View`] is what a reader sees: chains of sections and parts of tails; a [`Cursor`] merges them at a
//!   snapshot, forward or backward.
//! - [`merge`] chooses sections to merge and merges them; a [`Sorter`] makes sections of entries that
//!   come in no order, for builds.
//!
//! Not here: what keys and payloads mean, who writes the log, and when to fold.
//!
//! Reading order: [`entry`], [`pile`], [`chunk`], [`part`], [`tail`], [`block`], `groups`, [`layout`], [`columns`], [`stretch`], [`entry_digest`], [`marks`], [`section`], [`sections`],
//! `gone`, [`cursor`], [`view`], [`postings`], [`merge`], [`sorter`], [`snapshots`].
#![forbid(unsafe_code)]

pub mod block;
pub mod chunk;
pub mod columns;
pub mod cursor;
pub mod entry;
pub mod entry_digest;
mod filter;
mod gone;
mod groups;
mod key_sort;
pub mod layout;
pub mod marks;
pub mod merge;
pub mod part;
pub mod pile;
pub mod postings;
pub mod prefetch;
mod radix;
pub mod section;
pub mod sections;
pub mod snapshots;
pub mod sorter;
pub mod stretch;
pub mod tail;
pub mod varint;
pub mod view;

pub use block::PostingsForm;
pub use chunk::Chunk;
pub use cursor::Cursor;
pub use entry::{Direction, Entry, EntryKey, EntryKeyBuf, RecordId};
pub use entry_digest::EntryDigest;
pub use filter::{HashedKey, KeyFilter};
pub use gone::Gone;
pub use part::Part;
pub use pile::{Pile, PileBuilder, SharedPayload};
pub use postings::{KeyLists, PostingList};
pub use section::{RunSink, Section, SectionDescriptor, SectionOptions, SectionWriter};
pub use snapshots::{Age, Snapshot, Snapshots};
pub use sorter::Sorter;
pub use tail::Tail;
pub use view::{View, held_in_section};
pub use windrow_storage::{Position, RunId, StorageError};
