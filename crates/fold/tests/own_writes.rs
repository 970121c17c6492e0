//! A transaction reads at its snapshot, and sees all its own writes besides.

use std::sync::Arc;

use windrow_fold::sections::Sections;
use windrow_fold::{Direction, Entry, EntryBufferBuilder, Position, RecordId, TailPart, View};

type Written<'a> = (&'a str, u64, Option<&'a str>);

fn part(entries: &[Written<'_>]) -> Arc<TailPart> {
    let base = entries.iter().map(|(_, position, _)| *position).min();
    let mut builder = EntryBufferBuilder::new(Position(base.unwrap_or(0)), entries.len());
    for (key, position, payload) in entries {
        builder.add(Entry {
            key: key.as_bytes(),
            id: RecordId(1),
            position: Position(*position),
            deleted: payload.is_none(),
            payload: payload.unwrap_or_default().as_bytes(),
        });
    }
    Arc::new(builder.finish().into())
}

fn check(others: &[Written<'_>], own: &[Written<'_>], expected: &[(&str, &str)]) {
    let view = View {
        sections: Arc::new(Sections::new(Vec::new())),
        parts: vec![part(others), part(own)],
        snapshot: Position(5),
        own_parts: 1,
    };
    let mut expected = expected.to_vec();
    for direction in [Direction::Forward, Direction::Backward] {
        let (mut cursor, mut found) = (view.cursor(direction), Vec::new());
        while cursor.next().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            found.push((text(cursor.key()), text(cursor.payload())));
        }
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected);
        expected.reverse();
    }
    for key in ["a", "b", "c"] {
        let wanted = expected.iter().find(|(one, _)| *one == key);
        let wanted = wanted.map(|(_, payload)| payload.as_bytes().to_vec());
        let found = view.get(key.as_bytes(), RecordId(1)).unwrap();
        assert_eq!(found.map(|bytes| bytes.to_vec()), wanted);
        let mut cursor = view.cursor_for_key(key.as_bytes()).unwrap();
        cursor.seek(key.as_bytes(), RecordId::MIN).unwrap();
        let is_there = cursor.next().unwrap() && cursor.key() == key.as_bytes();
        assert_eq!(is_there.then(|| cursor.payload().to_vec()), wanted);
    }
}

#[test]
fn later_writes_of_others_are_invisible_and_own_writes_are_visible() {
    let others = [("a", 5, Some("old")), ("b", 6, Some("later"))];
    check(&others, &[], &[("a", "old")]);
    check(&others, &[("a", 7, Some("own"))], &[("a", "own")]);
    check(&others, &[("a", 7, None)], &[]);
    check(
        &others,
        &[("b", 7, Some("own"))],
        &[("a", "old"), ("b", "own")],
    );
    let twice = [("c", 7, Some("first")), ("c", 8, Some("second"))];
    check(&others, &twice, &[("a", "old"), ("c", "second")]);
    check(
        &others,
        &[("c", 7, Some("first")), ("c", 8, None)],
        &[("a", "old")],
    );
}
