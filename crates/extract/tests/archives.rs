//! Archives of real programs, with the documents that are expected from each.

use std::path::Path;

use windrow_extract::{DocumentKind, ExtractedDocument, Limits, Output, extract};

fn documents(name: &str) -> Vec<ExtractedDocument> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = std::fs::read(folder.join(name)).expect(name);
    let mut documents = Vec::new();
    let mut emit = |output| match output {
        Output::Document(document) => documents.push(*document),
        Output::Failure(failure) => panic!("{name}: {failure:?}"),
    };
    extract(name, &bytes, &Limits::default(), &mut emit).expect(name);
    documents.sort_by(|a, b| a.inner_path.cmp(&b.inner_path));
    documents
}

const DEEP: &str = "!/deep/folder-00-with-a-long-name/folder-01-with-a-long-name/\
    folder-02-with-a-long-name/folder-03-with-a-long-name/folder-04-with-a-long-name/\
    folder-05-with-a-long-name/Größe.txt";

/// Checks an archive of the same files: a page, Markdown, a picture, a long text, and, with
/// `with_deep`, one in a folder with a long name.
fn check(name: &str, with_deep: bool) {
    let words = "Many words about bread, which are compressed. ".repeat(40);
    let expected = [
        (DEEP, DocumentKind::Text, "A deep file."),
        ("!/docs/notes.md", DocumentKind::Markdown, "Salt\n\nwater"),
        ("!/docs/page.html", DocumentKind::Html, "Größe und Salz"),
        ("!/words.txt", DocumentKind::Text, words.trim_end()),
    ];
    let found = documents(name);
    let found: Vec<_> = found
        .iter()
        .map(|it| {
            (
                it.inner_path.as_deref().unwrap_or(""),
                it.kind,
                it.text.trim_end(),
            )
        })
        .collect();
    assert_eq!(found, expected[usize::from(!with_deep)..], "{name}");
}

#[test]
fn tar_archives_are_read_through_all_decompressors() {
    check("gnu.tar.gz", true);
    check("pax.tar.bz2", true);
    check("v7.tar.xz", false);
    check("ustar.tar.zst", false);
    for name in ["gnu.tar.lz4", "gnu.tar.Z", "gnu.tar.lzma", "gnu.tar.lz"] {
        check(name, true);
    }
}
