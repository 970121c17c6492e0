//! A map over the log: a tail in memory, sections in run files, and readers at snapshots.
//!
//! An [`Entry`] has a key, a record id, the position of the commit that wrote it, a tombstone flag
//! and a payload. A map has entries ordered by key, then id, then position with the newest first.
//! All maps of Windrow have this form: documents by record id (empty keys, documents as payloads),
//! `_id`s and indexes (key bytes, record ids).
//!
//! **Not here:** what keys and payloads mean, when to fold or merge, and who writes the log and the
//! catalog. That is the crate `collection`.
//!
//! # Main types
//!
//! - [`EntryBuffer`]: entries in memory in order of arrival. [`SortedBuffer`]: the same, sorted.
//! - [`Tail`]: the memtable of a map, in [`TailPart`]s that are sorted when a reader needs their
//!   order.
//! - [`SectionWriter`] writes a [`Section`]: a sorted immutable part of a run file, with blocks,
//!   fences and filters. [`Sections`](sections::Sections) are those of a map, ordered by age.
//! - [`View`]: a map at a [`Snapshot`]. A [`Cursor`] reads it in order, a [`PostingList`] reads the
//!   postings of one key with score bounds.
//! - [`merge`] selects sections to merge and writes the versions that snapshots need. A [`Sorter`]
//!   writes sections of unsorted entries, for index builds.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use windrow_fold::{
//!     Direction, Entry, EntryBufferBuilder, Position, RecordId, Tail, View, sections::Sections,
//! };
//!
//! // A commit at position 1 puts an entry into the tail.
//! let (tail, position) = (Tail::default(), Position(1));
//! let mut entries = EntryBufferBuilder::new(position, 1);
//! entries.add(Entry {
//!     key: b"color:red",
//!     id: RecordId(7),
//!     position,
//!     deleted: false,
//!     payload: b"",
//! });
//! let parts = tail.parts_up_to(position, |_| (vec![entries.finish().into()], position));
//!
//! // A snapshot at this position sees it.
//! let view = View {
//!     sections: Arc::new(Sections::default()),
//!     parts: parts.to_vec(),
//!     snapshot: position,
//!     own_parts: 0,
//! };
//! let mut cursor = view.cursor(Direction::Forward);
//! cursor.seek(b"color:", RecordId::MIN)?;
//! assert!(cursor.next()?);
//! assert_eq!((cursor.key(), cursor.id()), (&b"color:red"[..], RecordId(7)));
//! # Ok::<(), windrow_fold::StorageError>(())
//! ```
//!
//! # Modules in reading order
//!
//! 1. Entries: [`entry`], [`entry_digest`], [`marks`], [`varint`], `filter`.
//! 2. In memory: [`entry_buffer`], [`sorted_buffer`], [`tail_part`], [`tail`]; `key_sort`, `radix`
//!    and [`prefetch`] below them.
//! 3. In files: [`block`] writes blocks; `groups`, [`block_layout`] and [`restart_interval`] read
//!    them; [`columns`] is their packed form; [`section`], [`sections`]; `extents` are what a
//!    section keeps of its lists of postings.
//! 4. Reading: [`snapshots`], `tombstone_ranges`, [`cursor`], [`view`], `lookup`,
//!    [`postings`].
//! 5. Writing sections: [`merge`], [`sorter`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod block;
pub mod block_layout;
pub mod columns;
pub mod cursor;
pub mod entry;
pub mod entry_buffer;
pub mod entry_digest;
mod extents;
mod filter;
mod groups;
mod key_sort;
mod lookup;
pub mod marks;
pub mod merge;
pub mod parallel;
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
pub use sorter::{KeyNumber, Sorter};
pub use tail::{ExistingParts, Tail};
pub use tail_part::TailPart;
pub use tombstone_ranges::TombstoneRanges;
pub use view::{View, keys_in_section};
pub use windrow_storage::{Position, RunId, StorageError};
