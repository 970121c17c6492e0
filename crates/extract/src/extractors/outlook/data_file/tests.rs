//! Items of all kinds in files of all versions, and damaged files.

use std::io::Read;

use flate2::read::GzDecoder;

use super::fixture::{Attachment, Folder, Item, Property, VERSIONS, Value, Version, write_file};
use crate::error::ExtractError;
use crate::fixtures::{extract_documents, extract_outputs};
use crate::limits::{FilePart, Limits};
use crate::output::{DocumentKind, DocumentMetadata, MailReference, Output};
use Value::{Bytes, Number, Text, Text8, Time};

/// 2024-01-02 03:04:05 UTC.
const TIME: u64 = 116_444_736_000_000_000 + 1_704_164_645_000 * 10_000;

fn text(text: &'static str) -> Value {
    Text(text)
}

fn recipient(kind: u32, name: &'static str, address: &'static str) -> Vec<Property> {
    vec![
        (0x0c15, Number(kind)),
        (0x3001, text(name)),
        (0x39fe, text(address)),
    ]
}

fn mail() -> Item {
    let inner = Item {
        properties: vec![
            (0x001a, text("IPM.Note")),
            (0x0037, text("Inner")),
            (0x1000, text("Inner words")),
        ],
        ..Item::default()
    };
    Item {
        properties: vec![
            (0x001a, text("IPM.Note")),
            (0x0037, text("\u{1}\u{5}Re: Größe der Brote")),
            (0x0042, text("Adéle Lovelace")),
            (0x5d02, text("ada@example.org")),
            (0x0039, Time(TIME)),
            (0x1000, text("Die Größe der Brote.\r\nПривет")),
            (0x1035, text("<1@example.org>")),
            (
                0x007d,
                text("List-Id: Words about bread <bread.example.org>\r\n\r\n"),
            ),
        ],
        recipients: vec![
            recipient(1, "Bob", "bob@example.org"),
            recipient(2, "Carol", "carol@example.org"),
        ],
        attachments: vec![
            Attachment {
                properties: vec![
                    (0x3705, Number(1)),
                    (0x3707, text("Größen.csv")),
                    (0x3701, Bytes("Name,Größe\nRoggen,1\n".into())),
                ],
                item: None,
            },
            Attachment {
                properties: vec![(0x3705, Number(5)), (0x3001, text("Inner"))],
                item: Some(inner),
            },
            Attachment {
                properties: vec![
                    (0x3705, Number(1)),
                    (0x3707, text("long.txt")),
                    (0x3701, Bytes(long_text())),
                ],
                item: None,
            },
        ],
    }
}

/// A text that needs several blocks.
fn long_text() -> Vec<u8> {
    let lines: Vec<String> = (0..4000).map(|number| format!("line {number}\n")).collect();
    lines.concat().into_bytes()
}

fn simple(subject: &'static str, body: Property) -> Item {
    Item {
        properties: vec![(0x001a, text("IPM.Note")), (0x0037, text(subject)), body],
        ..Item::default()
    }
}

/// Folders in folders, with items of several classes.
fn folders() -> Vec<Folder> {
    let contact = Item {
        properties: vec![
            (0x001a, text("IPM.Contact")),
            (0x0037, text("Grace Hopper")),
            (0x3001, text("Grace Hopper")),
            (0x3a16, text("Navy")),
            (0x3a08, text("+1 555 0100")),
            (0x8001, text("grace@example.org")),
            (0x8003, text("no address")),
        ],
        ..Item::default()
    };
    let event = Item {
        properties: vec![
            (0x001a, text("IPM.Appointment")),
            (0x0037, text("Baking")),
            (0x0060, Time(TIME)),
            (0x8002, text("Kitchen")),
            (0x1000, text("Bring flour.")),
        ],
        ..Item::default()
    };
    let old = Item {
        properties: vec![
            (0x3ffd, Number(1251)),
            (0x0037, Text8(b"\xcf\xf0\xe8\xe2\xe5\xf2")),
            (0x1000, Text8(b"\xf5\xeb\xe5\xe1")),
        ],
        ..Item::default()
    };
    let html = Bytes("<html><meta charset=utf-8><p>Grüße <b>aus</b> Köln".into());
    let many = (0..40).map(|_| simple("Many", (0x1000, text("many words"))));
    let folder = |name, parent, items| Folder {
        name,
        parent,
        items,
    };
    vec![
        folder("Top of data file", 0, vec![]),
        folder(
            "Inbox",
            0,
            vec![mail(), simple("HTML", (0x1013, html)), old],
        ),
        folder("Bread/Rye", 1, vec![contact, event]),
        folder("Archive", 0, many.collect()),
    ]
}

const NAMED: [(u32, u16); 3] = [(0x8083, 1), (0x8208, 2), (0x8209, 3)];

fn write(version: Version) -> Vec<u8> {
    write_damaged(version, &mut |_| ())
}

/// Writes a file with valid checksums, after `damage` has changed its blocks.
pub(crate) fn write_damaged(version: Version, damage: &mut dyn FnMut(&mut Vec<u8>)) -> Vec<u8> {
    write_file(version, &folders(), &NAMED, damage)
}

#[test]
fn items_are_read_with_their_folders_and_attachments() {
    for version in VERSIONS {
        let all = extract_documents("mails.pst", &write(version));
        let paths: Vec<&str> = all
            .iter()
            .filter_map(|it| it.inner_path.as_deref())
            .collect();
        let expected = [
            "!/Inbox#65536",
            "!/Inbox#65536!/1/Größen.csv",
            "!/Inbox#65536!/2/Inner",
            "!/Inbox#65536!/3/long.txt",
            "!/Inbox#65537",
            "!/Inbox#65538",
            "!/Inbox/Bread_Rye#65539",
            "!/Inbox/Bread_Rye#65540",
            "!/Archive#65541",
        ];
        assert_eq!(paths[..9], expected, "version {}", version.number);
        assert_eq!(paths.len(), 48);
        let texts: Vec<&str> = all.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts[0], "Die Größe der Brote.\nПривет");
        assert_eq!(
            (texts[1], texts[2]),
            ("Name\tGröße\nRoggen\t1", "Inner words")
        );
        assert!(texts[3].trim_end().as_bytes() == long_text().trim_ascii_end());
        assert_eq!((texts[4], texts[5]), ("Grüße aus Köln", "хлеб"));
        assert_eq!(all[5].title.as_deref(), Some("Привет"));
    }
}

/// The files for the tests of `windrow index`.
#[test]
fn the_fixtures_are_files_that_this_module_writes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, version) in [("items.pst.gz", VERSIONS[2]), ("items.ost.gz", VERSIONS[4])] {
        let fixture = std::fs::read(folder.join(name)).unwrap();
        let mut bytes = Vec::new();
        let read = GzDecoder::new(&fixture[..]).read_to_end(&mut bytes);
        read.unwrap();
        let documents = extract_documents("items", &write(version));
        assert!(extract_documents("items", &bytes) == documents, "{name}");
    }
}

#[test]
fn headers_are_fields() {
    let all = extract_documents("mails.pst", &write(VERSIONS[2]));
    let expected = DocumentMetadata {
        from: vec!["Adéle Lovelace <ada@example.org>".into()],
        to: vec!["Bob <bob@example.org>".into()],
        cc: vec!["Carol <carol@example.org>".into()],
        subject: Some("Re: Größe der Brote".into()),
        date_ms: Some(1_704_164_645_000),
        message_id: Some("1@example.org".into()),
        list_id: Some("Words about bread <bread.example.org>".into()),
        ..DocumentMetadata::default()
    };
    assert_eq!(
        (all[0].kind, &all[0].metadata),
        (DocumentKind::Mail, &expected)
    );
    let attached_to = Some(MailReference {
        inner_path: Some("!/Inbox#65536".into()),
        message_id: Some("1@example.org".into()),
    });
    for attachment in &all[1..4] {
        assert_eq!(attachment.metadata.attached_to, attached_to);
    }
    let (contact, event) = (&all[6], &all[7]);
    assert_eq!(
        (contact.kind, event.kind),
        (DocumentKind::Contact, DocumentKind::Event)
    );
    assert_eq!(
        contact.text,
        "Grace Hopper\n+1 555 0100\nNavy\ngrace@example.org"
    );
    assert_eq!(event.text, "Kitchen\nBring flour.");
    assert_eq!(event.metadata.date_ms, Some(1_704_164_645_000));
}

#[test]
fn parts_divide_the_items() {
    let file = write(VERSIONS[2]);
    let mut found = Vec::new();
    for index in 0..3 {
        let limits = Limits {
            file_part: FilePart { index, count: 3 },
            ..Limits::default()
        };
        let counts = crate::extract("mails.pst", &file, &limits, &mut |output| match output {
            Output::Document(document) => found.push(document.inner_path),
            other => panic!("{other:?}"),
        });
        assert!(counts.is_ok_and(|counts| counts.documents > 10));
    }
    let mut whole: Vec<_> = extract_documents("mails.pst", &file)
        .into_iter()
        .map(|document| document.inner_path)
        .collect();
    found.sort();
    whole.sort();
    assert_eq!(found, whole);
}

/// A damaged byte of a text: the mail is emitted together with a failure.
#[test]
fn damaged_items_are_documents_and_failures() {
    let mut file = write(VERSIONS[1]);
    let words: Vec<u8> = "Bring".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let offset = file
        .windows(words.len())
        .position(|it| it == words)
        .unwrap();
    file[offset] = b'F';
    let (outputs, counts) = extract_outputs("mails.pst", &file);
    let counts = counts.unwrap();
    assert_eq!((counts.documents, counts.failures), (48, 1));
    let failure = outputs.iter().find_map(|output| match output {
        Output::Failure(failure) => Some(failure),
        _ => None,
    });
    let failure = failure.unwrap();
    assert_eq!(failure.inner_path, "!/Inbox/Bread_Rye#65540");
    assert_eq!(
        failure.error.to_string(),
        "damaged Outlook data file: the checksum of a block is wrong"
    );
    let texts = outputs.iter().filter_map(|output| match output {
        Output::Document(document) => Some(document.text.as_str()),
        _ => None,
    });
    assert!(texts.into_iter().any(|text| text.ends_with("Fring flour.")));
}

/// A damaged page of the index of nodes: the other items are emitted together with a failure.
#[test]
fn damaged_indexes_are_failures_of_the_file() {
    let mut file = write(VERSIONS[1]);
    let is_leaf = |page: &&[u8]| page[496..498] == [0x81, 0x81] && page[491] == 0;
    let last = file.chunks(512).rposition(|page| is_leaf(&page)).unwrap();
    file[last * 512] ^= 1;
    let (outputs, counts) = extract_outputs("mails.pst", &file);
    assert_eq!(
        counts.unwrap_err().to_string(),
        "damaged Outlook data file: the checksum of a page of an index is wrong"
    );
    assert!((40..48).contains(&outputs.len()), "{}", outputs.len());
}

#[test]
fn cut_off_files_and_unknown_versions_are_refused() {
    let file = write(VERSIONS[1]);
    let error = |bytes: &[u8]| extract_outputs("mails.pst", bytes).1.unwrap_err();
    assert_eq!(error(&file[..400]).code(), "malformed");
    assert_eq!(error(&file[..file.len() / 2]).code(), "malformed");
    let mut other = file.clone();
    other[10] = 99;
    assert_eq!(
        error(&other).to_string(),
        "damaged Outlook data file: version 99 is not known"
    );
    let mut encrypted = file.clone();
    encrypted[513] = 0x10;
    assert_eq!(
        error(&encrypted),
        ExtractError::Encrypted("Outlook data file")
    );
}
