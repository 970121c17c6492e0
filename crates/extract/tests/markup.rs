//! Markup files of real programs, with the expected text and metadata.

mod common;

use common::read_documents;
use windrow_extract::{DocumentKind, ExtractedDocument};

/// Reads a file of one document and checks its text.
fn check(name: &str, kind: DocumentKind, text: &str) -> ExtractedDocument {
    let mut documents = read_documents(name);
    assert_eq!(documents.len(), 1, "{name}");
    let document = documents.remove(0);
    assert_eq!(
        (document.kind, document.text.as_str()),
        (kind, text),
        "{name}"
    );
    document
}

/// The words of the source that pandoc converted to each format.
const WORDS: [&str; 16] = [
    "Größe der Brote",
    "code word",
    "One item",
    "bold",
    "A quote from Zoë",
    "Flour",
    "Weight",
    "Rye",
    "500 g",
    "knead(dough)",
    "Привет мир",
    "A foot note",
    "quoted",
    "link",
    "first",
    "ends it",
];

/// The block quote of `pandoc.rst` was treated as the content of the empty comment before it.
#[test]
fn pandoc_writes_the_same_text_in_each_format() {
    let names = [
        "adoc", "dbk", "html", "ipynb", "man", "md", "org", "rst", "tei", "tex", "texi",
    ];
    for extension in names {
        let name = format!("pandoc.{extension}");
        let documents = read_documents(&name);
        let [document] = documents.as_slice() else {
            panic!("{name}: {} documents", documents.len());
        };
        for words in WORDS {
            assert!(
                document.text.contains(words),
                "{name}: {words:?} in {}",
                document.text
            );
        }
        let has_title = !matches!(extension, "ipynb" | "texi");
        let title = document.title.as_deref();
        assert_eq!(
            title == Some("Bread & salt"),
            has_title,
            "{name}: {title:?}"
        );
        let has_author = !matches!(extension, "ipynb" | "man");
        let author = document.metadata.author.as_deref();
        assert_eq!(author, has_author.then_some("Ada Lovelace"), "{name}");
    }
    let marks = ["hypertarget", "gruxf6uxdfe", "begin{", "textbf"];
    let text = &read_documents("pandoc.tex")[0].text;
    assert!(marks.iter().all(|mark| !text.contains(mark)), "{text}");
}

#[test]
fn nodes_of_an_info_manual_are_documents() {
    let documents = read_documents("makeinfo.info");
    let paths: Vec<_> = documents
        .iter()
        .map(|it| it.inner_path.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(paths, ["!/Top", "!/Größe der Brote"]);
    assert!(documents[1].text.contains("A quote from Zoë."));
}

#[test]
fn subtitles_are_their_lines() {
    for name in ["ffmpeg.srt", "ffmpeg.vtt", "ffmpeg.ass"] {
        check(name, DocumentKind::Text, "Knead the dough\nGröße of bread");
    }
}

#[test]
fn translations_have_both_languages() {
    let catalogue = check(
        "gettext.mo",
        DocumentKind::Source,
        "Knead the dough\nDen Teig kneten\none loaf many loaves\nein Laib viele Größen",
    );
    assert_eq!(catalogue.language.as_deref(), Some("de"));
    let source = &read_documents("gettext.po")[0];
    let lines = "Knead the dough\nDen Teig kneten\none loaf\nmany loaves\nein Laib\nviele Größen";
    assert!(source.text.ends_with(lines), "{}", source.text);
    assert_eq!(source.language.as_deref(), Some("de"));
}

#[test]
fn contacts_and_events_are_unfolded() {
    let contact = check(
        "vobject.vcf",
        DocumentKind::Contact,
        "Ada Lovelace\nada@example.org\nLovelace Ada\nGröße of bread; a long note that has to be \
         folded over several lines of the card, as the standard wants it\nBakery Rye",
    );
    assert_eq!(contact.title.as_deref(), Some("Ada Lovelace"));
    let event = check(
        "icalendar.ics",
        DocumentKind::Event,
        "Bake bread, then eat\nbob@example.org\nGröße of bread\nKnead; a long description that has \
         to be folded over several lines of the calendar\nKitchen",
    );
    assert_eq!(event.metadata.date_ms, Some(1_714_986_489_000));
}

#[test]
fn feeds_have_their_entries() {
    let text = "Bread & salt\nHow to bake\n\nCrusty loaf\nGröße of bread";
    check("feedgen.rss", DocumentKind::Feed, text);
    let text = "Bread & salt\nAda Lovelace\n\nCrusty loaf\nGröße of bread";
    check("feedgen.atom", DocumentKind::Feed, text);
}

#[test]
fn other_texts_are_read() {
    check(
        "bibtexparser.bib",
        DocumentKind::Document,
        "ada\nauthor: Lovelace, Ada and Zoë Miller\npublisher: Bakery\ntitle: Bread & salt\nyear: 2024",
    );
    let drawing = &read_documents("graphviz.svg")[0];
    assert_eq!(drawing.title.as_deref(), Some("Bread & salt"));
    for words in ["Rye flour", "Größe"] {
        assert!(drawing.text.contains(words), "{}", drawing.text);
    }
    let torrent = &read_documents("transmission.torrent")[0].text;
    assert!(torrent.starts_with("A crumb comment\n"), "{torrent}");
    assert!(torrent.ends_with("picture.gif"), "{torrent}");
}
