//! Files of real programs, with the expected text and metadata.

use std::path::Path;

use windrow_extract::{
    DocumentKind, ExtractError, ExtractedDocument, ExtractionCounts, Limits, Output, extract,
};

fn read_fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(folder.join(name)).expect(name)
}

fn extract_fixture(name: &str) -> Result<ExtractedDocument, ExtractError> {
    let mut documents = Vec::new();
    let bytes = read_fixture(name);
    let counts = extract(
        name,
        &bytes,
        &Limits::default(),
        &mut |output| match output {
            Output::Document(document) => documents.push(*document),
            Output::Failure(failure) => panic!("{name}: {failure:?}"),
            Output::Skipped(_) => {}
        },
    )?;
    let expected = ExtractionCounts {
        documents: 1,
        failures: 0,
        skipped: 0,
    };
    assert_eq!(counts, expected, "{name}");
    Ok(documents.remove(0))
}

fn check(name: &str, kind: DocumentKind, text: &str) -> ExtractedDocument {
    let document = extract_fixture(name).expect(name);
    assert_eq!(document.text, text, "{name}");
    assert_eq!((document.kind, document.truncated), (kind, false), "{name}");
    document
}

/// Checks the metadata of files that LibreOffice created from the same source.
fn check_properties(document: &ExtractedDocument, keywords: &[&str]) {
    assert_eq!(document.title.as_deref(), Some("Bread & salt"));
    let metadata = &document.metadata;
    assert_eq!(metadata.author.as_deref(), Some("Ada Lovelace"));
    assert_eq!(metadata.subject.as_deref(), Some("Baking"));
    assert_eq!(metadata.description.as_deref(), Some("How to bake"));
    assert_eq!(metadata.keywords, keywords);
    assert_eq!(metadata.date_ms, Some(1_714_979_289_000));
}

const WORD_TEXT: &str = "Größe der Brote\nThe first paragraph has a note inside.\n\
    Tab\tand\nbreak. Привет мир.\nFlour\t500 g\nWater\t300 g\ncold\nOne item\nAn end note.\n\n\
    A foot note.\n\nAt the end.\n\nA comment.\n\nThe header\n\nThe footer";

#[test]
fn word_documents_are_read_with_notes_comments_and_headers() {
    let document = check("text.docx", DocumentKind::Document, WORD_TEXT);
    // LibreOffice separates keywords by spaces in this format.
    check_properties(&document, &["flour water"]);
    assert_eq!(document.language.as_deref(), Some("en"));
    let document = check(
        "pandoc.docx",
        DocumentKind::Document,
        "A book\nAda\nBob\n2020-01-02\nChapter one\nWords with a note & .\na\tb\n1\t2\n\
         Kapitel zwei\nGröße und “quotes” – Привет.\n\nThe note.",
    );
    assert_eq!(document.metadata.author.as_deref(), Some("Ada; Bob"));
}

#[test]
fn workbooks_are_read_with_cached_values_and_comments() {
    let text = "Prices\nName\tGröße\tDay\nRye <bread>\t0.1\t2024-05-06\n#VALUE!\t1\n\nPage\n\nToo dear\n\n\
        Привет\nSecond sheet\t-1234567\n\nPage";
    let document = check("sheet.xlsx", DocumentKind::Spreadsheet, text);
    check_properties(&document, &["flour water"]);
    let text = "A\nx\ty\n1.5\t2024-05-06 07:08:09\n2020-02-29\tTRUE\n\nLeft right\n\nPage\n\nLook\n\n\
        B\nlast";
    check("openpyxl.xlsx", DocumentKind::Spreadsheet, text);
}

#[test]
fn presentations_are_read_with_notes() {
    let text = "Über bread\nFirst point\nSecond point\n\nSay hello\n\nSecond slide";
    let document = check("slides.pptx", DocumentKind::Presentation, text);
    check_properties(&document, &["flour water"]);
    let document = check("slides.odp", DocumentKind::Presentation, text);
    check_properties(&document, &["flour", "water"]);
}

#[test]
fn open_document_files_are_read() {
    let text = WORD_TEXT
        .replace("мир.\n", "мир.\n\n")
        .replace("header\n\n", "header\n");
    for name in ["text.odt", "text.ott"] {
        let document = check(name, DocumentKind::Document, &text);
        check_properties(&document, &["flour", "water"]);
        assert_eq!(document.language.as_deref(), Some("en"));
    }
    let text = "Prices\nName\tGröße\tDay\nRye <bread>\t0.1\t2024-05-06\nErr:510\t1\n\nПривет\n\
        Second sheet\t-1234567\n\nToo dear\n\nPage";
    check("sheet.ods", DocumentKind::Spreadsheet, text);
    check("drawing.odg", DocumentKind::Drawing, "In a box\nIn a shape");
}

#[test]
fn djvu_documents_are_read_by_pages() {
    let text = "Sourdough bread\nrises slowly.\n\x0cBrötchen am Morgen.";
    let document = check("book.djvu", DocumentKind::Djvu, text);
    assert_eq!(document.title.as_deref(), Some("Baking"));
    let metadata = &document.metadata;
    assert_eq!(metadata.author.as_deref(), Some("Ada Baker"));
    assert_eq!(metadata.keywords, ["bread", "yeast"]);
    assert_eq!(metadata.pages, Some(2));
    let scan = extract_fixture("scan.djvu").unwrap_err();
    assert_eq!(scan, ExtractError::NoText("DjVu document"));
}

#[test]
fn iwork_documents_are_read() {
    let text = "Bakery\nPrices\nBread kind\nPrice\nRye with caraway\nGröße & Gewicht";
    check("table.numbers", DocumentKind::Spreadsheet, text);
}

#[test]
fn legacy_office_documents_are_read() {
    let text = "Größe der Brote\nThe first paragraph has a note inside.\nTab\tand\nbreak. \
        Привет мир.\nFlour\t500 g\nWater\t300 g\ncold\nOne item\nAn end note.\nA foot note.\n\
        The header\nThe footer\nA comment.\nAt the end.";
    let document = check("text.doc", DocumentKind::Document, text);
    check_properties(&document, &["flour", "water"]);
    let text = "Prices\n\nPage\nName\tGröße\tDay\nRye <bread>\t0.1\t2024-05-06\n1\n\nToo dear\n\n\
        Привет\n\nPage\nSecond sheet\t-1234567";
    let document = check("sheet.xls", DocumentKind::Spreadsheet, text);
    check_properties(&document, &["flour", "water"]);
    let text = "Über bread\nFirst point\nSecond point\n\nSecond slide\n\nSay hello";
    let document = check("slides.ppt", DocumentKind::Presentation, text);
    check_properties(&document, &["flour", "water"]);
}

#[test]
fn rtf_is_read_with_notes_after_the_body() {
    let text = WORD_TEXT.replace(
        "\n\nA foot note.\n\nAt the end.\n\nA comment.\n\nThe header\n\nThe footer",
        "\n\nThe header\nThe footer\nA foot note.\nA comment.\nAt the end.",
    );
    let document = check("text.rtf", DocumentKind::Document, &text);
    assert_eq!(document.title.as_deref(), Some("Bread & salt"));
    assert_eq!(document.metadata.keywords, ["flour", "water"]);
    // LibreOffice writes the author of the last change, and no seconds.
    assert_eq!(document.metadata.author.as_deref(), Some("Bob"));
    assert_eq!(document.metadata.date_ms, Some(1_714_979_280_000));
}

#[test]
fn books_are_read_by_chapters() {
    let text = "A book\n\nAda\n\nBob\n\n2020-01-02\n\nChapter one\n\nWords with a note1 & .\n\n\
        a b\n1 2\n\nThe note.↩\u{fe0e}\n\nKapitel zwei\n\nGröße und “quotes” – Привет.";
    let epub = check("book.epub", DocumentKind::Book, text);
    let text = "A book\n\nChapter one\nWords with a note[1] & .\n\na\tb\n1\t2\n\nKapitel zwei\n\
        Größe und “quotes” – Привет.\n\n1\nThe note.";
    let fb2 = check("book.fb2", DocumentKind::Book, text);
    for book in [epub, fb2] {
        assert_eq!(book.title.as_deref(), Some("A book"));
        assert_eq!(book.language.as_deref(), Some("de"));
        assert_eq!(book.metadata.author.as_deref(), Some("Ada, Bob"));
        assert_eq!(book.metadata.date_ms, Some(1_577_923_200_000));
    }
}

#[test]
fn tables_are_read_with_the_names_of_their_columns() {
    let text = "Name\tGröße\tDay\nRye <bread>\t0.1\t2024-05-06\nErr:510\t1";
    let document = check("table.csv", DocumentKind::Table, text);
    assert_eq!(document.metadata.columns, ["Name", "Größe", "Day"]);
}

#[test]
fn encrypted_documents_are_reported() {
    let error = extract_fixture("encrypted.docx").expect_err("it has a password");
    assert_eq!(error, ExtractError::Encrypted("Office document"));
    let message = "the Office document is encrypted";
    assert_eq!(error.to_string(), message);
}
