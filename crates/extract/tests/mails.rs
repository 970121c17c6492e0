//! Mails and mailboxes of real programs, with the expected text and metadata.

use std::path::Path;

use windrow_extract::{
    DocumentKind, DocumentMetadata, ExtractError, ExtractedDocument, Limits, MailReference,
    MemberFailure, Output, extract,
};

fn extract_fixture(name: &str) -> Vec<Output> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = std::fs::read(folder.join(name)).expect(name);
    let mut outputs = Vec::new();
    let mut emit = |output| outputs.push(output);
    extract(name, &bytes, &Limits::default(), &mut emit).expect(name);
    outputs
}

fn documents(name: &str) -> Vec<ExtractedDocument> {
    let document = |output| match output {
        Output::Document(document) => Some(*document),
        Output::Failure(failure) => panic!("{name}: {failure:?}"),
        Output::Skipped(_) => None,
    };
    extract_fixture(name)
        .into_iter()
        .filter_map(document)
        .collect()
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_string()).collect()
}

/// The header fields of all mails by Python's `email`.
fn headers(number: u32, subject: &str) -> DocumentMetadata {
    DocumentMetadata {
        from: texts(&["Adéle Lovelace <ada@example.org>"]),
        to: texts(&["Bob <bob@example.org>", "Carol, C. <carol@example.org>"]),
        cc: texts(&["dan@example.org"]),
        bcc: texts(&["eve@example.org"]),
        reply_to: texts(&["list@example.org"]),
        subject: Some(subject.into()),
        date_ms: Some(1_704_161_045_000),
        message_id: Some(format!("{number}@example.org")),
        in_reply_to: texts(&["0@example.org"]),
        references: texts(&["00@example.org", "0@example.org"]),
        list_id: Some("Words about bread <bread.example.org>".into()),
        ..DocumentMetadata::default()
    }
}

const SUBJECT: &str = "Größe der Brote — eine sehr lange Betreffzeile, die gefaltet werden muss, \
    weil sie lang ist";

#[test]
fn a_mail_is_read_with_its_attachments() {
    let all = documents("attachments.eml");
    let [mail, table, inner] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(mail.title.as_deref(), Some(SUBJECT));
    assert_eq!(mail.text, "Die Größe der Brote.\nFrom here on we bake.");
    assert_eq!(mail.metadata, headers(1, SUBJECT));
    let attached_to = Some(MailReference {
        inner_path: None,
        message_id: Some("1@example.org".into()),
    });
    assert_eq!(table.inner_path.as_deref(), Some("!/1/Größen.csv"));
    assert_eq!(
        (table.kind, table.text.as_str()),
        (DocumentKind::Table, "Name\tGröße\nRoggen\t1")
    );
    assert_eq!(table.metadata.attached_to, attached_to);
    assert_eq!(inner.inner_path.as_deref(), Some("!/2/message.eml"));
    assert_eq!(
        (inner.title.as_deref(), inner.text.as_str()),
        (Some("Inner"), "Inner words")
    );
    assert_eq!(inner.metadata.attached_to, attached_to);
}

#[test]
fn a_mailbox_is_split_into_its_mails() {
    let all = documents("mails.mbox");
    let paths: Vec<&str> = all
        .iter()
        .filter_map(|it| it.inner_path.as_deref())
        .collect();
    assert_eq!(paths, ["#1", "#1!/1/Größen.csv", "#1!/2/message.eml", "#2"]);
    let attached_to = all[1].metadata.attached_to.as_ref().expect("a mail");
    assert_eq!(attached_to.inner_path.as_deref(), Some("#1"));
    assert_eq!(all[3].text, "From the second.\n\nFrom here nothing splits.");
    assert_eq!(all[3].metadata, headers(2, "Second"));
}

#[test]
fn signed_mails_are_read_and_encrypted_ones_reported() {
    let [signed] = &documents("signed.eml")[..] else {
        panic!("one document")
    };
    assert_eq!(signed.title.as_deref(), Some("Signed bread"));
    assert_eq!(signed.text, "The signed bread.");
    let outputs = extract_fixture("encrypted.eml");
    let [Output::Document(mail), Output::Failure(failure)] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(
        (mail.title.as_deref(), mail.text.as_str()),
        (Some("Encrypted bread"), "")
    );
    let expected = MemberFailure {
        inner_path: "!/1/encrypted".into(),
        error: ExtractError::Encrypted("mail"),
        attached_to: failure.attached_to.clone(),
    };
    let attached_to = failure.attached_to.as_ref().unwrap();
    assert_eq!(attached_to.message_id, mail.metadata.message_id);
    assert_eq!(*failure, expected);
    assert_eq!(failure.error.to_string(), "the mail is encrypted");
}

#[test]
fn outlook_messages_are_read_with_their_attachments() {
    let all = documents("text.msg");
    let paths: Vec<&str> = all
        .iter()
        .filter_map(|it| it.inner_path.as_deref())
        .collect();
    let inner = "!/2/attachment.bin";
    assert_eq!(
        paths,
        ["!/1/Größen.csv", inner, &format!("{inner}!/1/deep.txt")]
    );
    let mail = &all[0];
    assert_eq!(
        (mail.kind, mail.text.as_str()),
        (DocumentKind::Mail, "Die Größe der Brote.\nПривет")
    );
    let expected = DocumentMetadata {
        from: texts(&["Adéle Lovelace <ada@example.org>"]),
        to: texts(&["Bob <bob@example.org>", "Carol <carol@example.org>"]),
        cc: texts(&["dan@example.org"]),
        subject: Some("Größe der Brote".into()),
        date_ms: Some(1_704_161_045_000),
        message_id: Some("1@example.org".into()),
        references: texts(&["0@example.org"]),
        list_id: Some("Words about bread <bread.example.org>".into()),
        ..DocumentMetadata::default()
    };
    assert_eq!(mail.metadata, expected);
    assert_eq!(all[1].text, "Name\tGröße\nRoggen\t1");
    assert_eq!(all[2].text, "Inner words");
    let attached_to = all[3].metadata.attached_to.as_ref().expect("a mail");
    assert_eq!(attached_to.inner_path.as_deref(), Some(inner));
    assert_eq!(attached_to.message_id.as_deref(), Some("2@example.org"));
    for (name, title, text) in [
        ("html.msg", "Grüße", "Die Größe"),
        ("rtf.msg", "RTF body", "Die Größe der Brote\nund Salz"),
    ] {
        let [mail] = &documents(name)[..] else {
            panic!("{name}: one document")
        };
        assert_eq!(
            (mail.title.as_deref(), mail.text.as_str()),
            (Some(title), text)
        );
    }
}
