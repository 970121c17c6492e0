//! The target `block`: data blocks of sections.

use windrow_fold::block::BlockBuilder;
use windrow_fold::block_layout::BlockLayout;
use windrow_fold::restart_interval::RestartInterval;
use windrow_fold::{Entry, Position, RecordId, columns};

/// Decodes the bytes as a block, compressed and uncompressed. Valid entries are encoded again and
/// must be unchanged.
pub fn run(bytes: &[u8]) {
    columns::unpack(bytes);
    columns::columns(bytes);
    let Some(entries) = decode(bytes) else {
        return;
    };
    look_up(bytes, &entries);
    if !entries
        .windows(2)
        .all(|pair| is_ordered(&pair[0], &pair[1]))
    {
        return;
    }
    let again = encode(&entries);
    assert_eq!(decode(&again).as_ref(), Some(&entries), "encoded again");
    let packed = columns::columns(&again).map(|columns| columns.concat());
    let unpacked = packed.and_then(|packed| columns::unpack(&packed));
    assert_eq!(unpacked, Some(again), "compressed");
}

#[derive(Debug, PartialEq)]
struct OwnedEntry {
    key: Vec<u8>,
    id: RecordId,
    position: Position,
    deleted: bool,
    payload: Vec<u8>,
}

/// Decodes all entries. Returns `None` if the block is damaged.
fn decode(block: &[u8]) -> Option<Vec<OwnedEntry>> {
    let (mut entries, mut interval) = (Vec::new(), RestartInterval::default());
    for number in 0..BlockLayout::read(block)?.intervals() {
        interval.decode(block, number)?;
        for index in 0..interval.len() {
            let Entry {
                key,
                id,
                position,
                deleted,
                payload,
            } = interval.get(block, index)?;
            let (key, payload) = (key.to_vec(), payload.to_vec());
            entries.push(OwnedEntry {
                key,
                id,
                position,
                deleted,
                payload,
            });
        }
    }
    Some(entries)
}

/// Returns `true` if `next` can follow `entry` in a block.
fn is_ordered(entry: &OwnedEntry, next: &OwnedEntry) -> bool {
    let order = entry.key.cmp(&next.key).then(entry.id.cmp(&next.id));
    order.then(next.position.cmp(&entry.position)).is_lt()
}

fn encode(entries: &[OwnedEntry]) -> Vec<u8> {
    let (mut builder, mut raw) = (BlockBuilder::default(), Vec::new());
    let mut last: Option<&[u8]> = None;
    for OwnedEntry {
        key,
        id,
        position,
        deleted,
        payload,
    } in entries
    {
        let entry = Entry {
            key,
            id: *id,
            position: *position,
            deleted: *deleted,
            payload,
        };
        builder.push(&entry, last != Some(key)).unwrap();
        last = Some(key);
    }
    builder.finish(&mut raw).unwrap();
    raw
}

/// Searches for keys, some of which exist. Any result is accepted, but no panic.
fn look_up(block: &[u8], entries: &[OwnedEntry]) {
    let mut interval = RestartInterval::default();
    let keys = entries.iter().take(8).map(|it| (it.key.as_slice(), it.id));
    for (key, id) in keys.chain([(&b""[..], RecordId::MIN), (&b"\xFF"[..], RecordId::MAX)]) {
        let within = BlockLayout::read(block).and_then(|layout| layout.interval_of(key, id));
        if let Some(within) = within
            && interval.decode(block, within).is_some()
        {
            let (low, high) = (interval.lower_bound(key, id), interval.upper_bound(key, id));
            assert!(
                interval.get(block, low.max(high)).is_some() || low.max(high) >= interval.len()
            );
        }
    }
}
