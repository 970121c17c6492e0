//! A map over the log: a tail in memory, sections of sorted blocks in runs, merges, cursors and
//! snapshots.
//!
//! An [`Entry`] is a key, a record id, the position that made it, whether it is deleted, and a
//! payload; a map holds entries ordered by key, then record id, then position, newest first. Every
//! map of Windrow has this form: documents (empty key, the document as payload), `_id`s and
//! indexes (key bytes, record ids).
//!
//! - A [`EntryBuffer`] has entries in memory as they came, a [`SortedBuffer`] in order. A [`TailPart`] is a buffer until
//!   somebody needs its order; a [`Tail`] holds parts of geometrically growing size.
//! - A [`Section`] is a sorted interval in a run file: blocks, fences, filters. What only those see who read
//!   at an old position stands in past [`sections`].
//! - A [`View`] is what a reader sees: chains of sections and parts of tails; a [`Cursor`] merges them at a
//!   snapshot, forward or backward.
//! - [`merge`] chooses sections to merge and merges them; a [`Sorter`] makes sections of entries that
//!   come in no order, for builds.
//!
//! Not here: what keys and payloads mean, who writes the log, and when to fold.
//!
//! Reading order: [`entry`], [`buffer`], [`buffer`], [`part`], [`tail`], [`block`], `groups`, [`layout`], [`columns`], [`interval`], [`entry_digest`], [`marks`], [`section`], [`sections`],
//! `gone`, [`cursor`], [`view`], [`postings`], [`merge`], [`sorter`], [`snapshots`].
#![forbid(unsafe_code)]

pub mod block;
pub mod block_layout;
pub mod columns;
pub mod cursor;
pub mod entry;
pub mod entry_buffer;
pub mod entry_digest;
mod filter;
mod groups;
mod key_sort;
pub mod marks;
pub mod merge;
pub mod postings;
pub mod prefetch;
mod radix;
pub mod restart_interval;
pub mod section;
pub mod sections;
pub mod snapshots;
pub mod sorted_buffer;
pub mod sorter;
pub mod tail;
pub mod tail_part;
mod tombstone_ranges;
pub mod varint;
pub mod view;

pub use block::PostingsForm;
pub use cursor::Cursor;
pub use entry::{Direction, Entry, EntryKey, EntryKeyBuf, RecordId};
pub use entry_buffer::{EntryBuffer, EntryBufferBuilder, SharedPayload};
pub use entry_digest::EntryDigest;
pub use filter::{HashedKey, KeyFilter};
pub use postings::{KeyLists, PostingList};
pub use section::{RunSink, Section, SectionDescriptor, SectionOptions, SectionWriter};
pub use snapshots::{Snapshot, SnapshotLifetime, Snapshots};
pub use sorted_buffer::SortedBuffer;
pub use sorter::Sorter;
pub use tail::Tail;
pub use tail_part::TailPart;
pub use tombstone_ranges::TombstoneRanges;
pub use view::{View, keys_in_section};
pub use windrow_storage::{Position, RunId, StorageError};
