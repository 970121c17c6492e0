//! Archives of real programs, with the expected documents.

use std::path::Path;

use windrow_extract::{
    DocumentKind, ExtractError, ExtractedDocument, ExtractionCounts, Limits, Output, extract,
};

fn extract_fixture(
    name: &str,
    emit: &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = std::fs::read(folder.join(name)).expect(name);
    extract(name, &bytes, &Limits::default(), emit)
}

fn documents(name: &str) -> Vec<ExtractedDocument> {
    let mut documents = Vec::new();
    let mut emit = |output| match output {
        Output::Document(document) => documents.push(*document),
        Output::Failure(failure) => panic!("{name}: {failure:?}"),
        Output::Skipped(_) => {}
    };
    extract_fixture(name, &mut emit).expect(name);
    documents.sort_by(|a, b| a.inner_path.cmp(&b.inner_path));
    documents
}

const DEEP: &str = "!/deep/folder-00-with-a-long-name/folder-01-with-a-long-name/\
    folder-02-with-a-long-name/folder-03-with-a-long-name/folder-04-with-a-long-name/\
    folder-05-with-a-long-name/Größe.txt";

/// Checks an archive of the same files: a page, Markdown, a picture, a long text and, if
/// `with_deep`, a file in a folder with a long name.
fn check(name: &str, with_deep: bool) {
    let words = "Many words about bread, which are compressed. ".repeat(40);
    let expected = [
        (DEEP, DocumentKind::Text, "A deep file."),
        ("!/docs/notes.md", DocumentKind::Markdown, "Salt\n\nwater"),
        ("!/docs/page.html", DocumentKind::Html, "Größe und Salz"),
        ("!/logo.png", DocumentKind::Image, ""),
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

#[test]
fn zip_members_of_all_methods_are_read() {
    for name in ["deflate64.zip", "bzip2.zip", "lzma.zip", "zstd.zip"] {
        check(name, false);
    }
    let [script] = &documents("app.pyz")[..] else {
        panic!("one document")
    };
    assert_eq!(script.inner_path.as_deref(), Some("!/__main__.py"));
}

#[test]
fn archives_of_7z_and_cpio_are_read() {
    for name in ["lzma2.7z", "ppmd.7z", "bzip2.7z", "newc.cpio", "odc.cpio"] {
        check(name, true);
    }
}

#[test]
fn archives_of_all_versions_of_rar_are_read() {
    let check = |name: &str, expected: &[(&str, &str)]| {
        let found = documents(name);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|it| (it.inner_path.as_deref().unwrap_or(""), it.text.as_str()))
            .collect();
        assert_eq!(found, expected, "{name}");
    };
    let old = [("!/FILE1.TXT", "foooo\r\n"), ("!/FILE2.TXT", "baaaar\r\n")];
    check("rar15.rar", &old);
    let numbers: String = (0..512).map(|number| format!("{number:03}\n")).collect();
    let numbers = [("!/stest1.txt", &*numbers), ("!/stest2.txt", &*numbers)];
    for name in ["rar3-solid.rar", "rar5.rar", "rar5-solid.rar"] {
        check(name, &numbers);
    }
    let folders = [
        ("!/sub/dir1/file1.txt", "file1\n"),
        ("!/sub/dir2/file2.txt", "file2\n"),
        ("!/sub/with space/long fn.txt", "long fn\n"),
        ("!/sub/üȵĩöḋè/file.txt", "file\n"),
    ];
    check("rar3-folders.rar", &folders);
    check("rar5-folders.rar", &folders);
}

#[test]
fn encrypted_members_are_reported() {
    let read = |name: &str| {
        let mut failures = Vec::new();
        let counts = extract_fixture(name, &mut |output| match output {
            Output::Document(document) => panic!("{name}: {document:?}"),
            Output::Failure(failure) => failures.push((failure.inner_path, failure.error)),
            Output::Skipped(skipped) => panic!("{name}: {skipped:?}"),
        });
        (failures, counts.map(|counts| counts.failures))
    };
    let member = |name: &str, format| (format!("!/{name}"), ExtractError::Encrypted(format));
    let rar = member("stest1.txt", "RAR archive");
    let other = member("stest2.txt", "RAR archive");
    assert_eq!(read("rar5-encrypted.rar"), (vec![rar, other], Ok(2)));
    let hidden = Err(ExtractError::Encrypted("RAR archive"));
    assert_eq!(read("rar3-encrypted.rar"), (vec![], hidden));
    let zip = (
        "!/words.txt".to_string(),
        ExtractError::Encrypted("zip archive"),
    );
    assert_eq!(read("encrypted.zip"), (vec![zip], Ok(1)));
    let encrypted = Err(ExtractError::Encrypted("7z archive"));
    assert_eq!(read("encrypted.7z"), (vec![], encrypted.clone()));
    assert_eq!(read("hidden.7z"), (vec![], encrypted));
}

/// Returns the paths and texts of the documents.
fn texts(name: &str) -> Vec<(String, String)> {
    let text = |document: ExtractedDocument| {
        let path = document.inner_path.unwrap_or_default();
        (path, document.text.trim_end().to_string())
    };
    documents(name).into_iter().map(text).collect()
}

#[test]
fn packages_are_read_with_their_description() {
    let control = "Package: bread\nVersion: 1.0\nArchitecture: all\n\
        Maintainer: Ada Lovelace <ada@example.org>\nDescription: Bakes bread\n \
        It needs flour and salt.";
    let notes = "/usr/share/doc/bread/notes.md".to_string();
    let expected = [
        ("!/control.tar.xz!/control".to_string(), control.to_string()),
        (
            format!("!/data.tar.xz!{notes}"),
            "Salt\n\nwater".to_string(),
        ),
    ];
    assert_eq!(texts("bread.deb"), expected);

    let all = documents("bread.rpm");
    let [package, file] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(package.title.as_deref(), Some("bread"));
    let text = "bread-1.0-1\n\nBakes bread\n\nIt needs flour and\nsalt – nothing else.\n\nMIT\n\n\
        https://example.org/bread";
    assert_eq!(
        (package.inner_path.as_deref(), package.text.as_str()),
        (None, text)
    );
    assert_eq!(
        package.metadata.author.as_deref(),
        Some("Ada Lovelace <ada@example.org>")
    );
    assert_eq!(package.metadata.keywords, ["Kitchen/Baking"]);
    assert_eq!(package.metadata.description.as_deref(), Some("Bakes bread"));
    assert!(
        package
            .metadata
            .date_ms
            .is_some_and(|date_ms| date_ms > 1_700_000_000_000)
    );
    assert_eq!(file.inner_path, Some(format!("!{notes}")));

    let paths: Vec<String> = texts("library.a")
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        paths,
        ["!/a-long-name-for-words.txt", "!/notes.md", "!/page.html"]
    );
}

#[test]
fn disk_images_are_read_with_long_names() {
    check("rock-ridge.iso.xz", true);
    // genisoimage leaves out files in deep folders.
    check("joliet.iso.xz", false);
    let paths =
        |name: &str| -> Vec<String> { texts(name).into_iter().map(|(path, _)| path).collect() };
    let plain = paths("plain.iso.xz");
    assert!(plain.contains(&"!/DOCS/NOTES.MD".to_string()), "{plain:?}");
}
