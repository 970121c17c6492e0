use crate::error::ExtractError;
use crate::fixtures::{build_zip, extract_documents, extract_outputs};
use crate::output::DocumentKind;

const MAIN: &str = "<Relationships><Relationship Id='1' Type='http://x/officeDocument' \
                    Target='/word/main.xml'/></Relationships>";

fn build_word(body: &str) -> Vec<u8> {
    let xml = format!("<w:document><w:body>{body}</w:body></w:document>");
    build_zip(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", MAIN.as_bytes()),
        ("word/main.xml", xml.as_bytes()),
    ])
}

#[test]
fn only_visible_text_of_word_is_read() {
    let check = |body: &str, expected: &str| {
        let [document] = &extract_documents("a.docx", &build_word(body))[..] else {
            panic!("{body}")
        };
        assert_eq!(document.text, expected, "{body}");
        assert_eq!(document.kind, DocumentKind::Document);
    };
    check(
        "<w:p><w:r><w:t>a</w:t></w:r><w:r><w:t>b </w:t></w:r></w:p>",
        "ab",
    );
    check(
        "<w:p><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:p>",
        "a\tb\nc",
    );
    check(
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:t>a</w:t></w:p>",
        "a",
    );
    check(
        "<w:del><w:delText>gone</w:delText></w:del><w:ins><w:t>new</w:t></w:ins>",
        "new",
    );
    check("<w:instrText>PAGE</w:instrText><w:t>x</w:t>", "x");
    check(
        "<mc:AlternateContent><mc:Choice><w:t>a</w:t></mc:Choice>\
         <mc:Fallback><w:t>a</w:t></mc:Fallback></mc:AlternateContent>",
        "a",
    );
    check(
        "<w:tbl><w:tr><w:tc><w:p><w:t>a</w:t></w:p><w:p><w:t>b</w:t></w:p></w:tc>\
         <w:tc><w:p/></w:tc><w:tc><w:p><w:t>c</w:t></w:p></w:tc></w:tr></w:tbl><w:p><w:t>d</w:t></w:p>",
        "a\nb\tc\nd",
    );
    check(
        "<w:p><wp:docPr descr='A cat'/><w:t>sat</w:t></w:p>",
        "A cat sat",
    );
    check("", "");
}

#[test]
fn damaged_and_other_files_fail() {
    let check = |members: &[(&str, &[u8])], expected: &str| {
        let error = extract_outputs("a.docx", &build_zip(members)).1;
        assert_eq!(error.expect_err(expected).to_string(), expected);
    };
    let types: (&str, &[u8]) = ("[Content_Types].xml", b"<Types/>");
    let other = "no text can be extracted from this format: Office document of another kind";
    check(&[types], other);
    let relationships = ("_rels/.rels", MAIN.as_bytes());
    check(
        &[types, relationships, ("word/main.xml", b"<VisioDocument/>")],
        other,
    );
    check(
        &[types, relationships],
        "damaged Office document: the part \"word/main.xml\" is missing",
    );
    check(
        &[types, relationships, ("word/main.xml", b"")],
        "damaged Office document: its main part is empty",
    );
    let error = extract_outputs("a.docx", &build_word("<w:p></w:t>")).1;
    assert_eq!(error.map_err(|error| error.code()), Err("malformed"));
}

/// 17 MB of zeros are 17 KB in the archive.
#[test]
fn bombs_are_refused() {
    let bomb = build_word(&" ".repeat(40 << 20));
    let error = extract_outputs("a.docx", &bomb).1.expect_err("a bomb");
    assert!(matches!(error, ExtractError::Limit { .. }), "{error}");
}

#[test]
fn a_part_that_is_named_many_times_is_read_once() {
    let slides = "<sldId r:id='s'/>".repeat(1000);
    let presentation = format!("<p:presentation>{slides}</p:presentation>");
    let file = build_zip(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", MAIN.as_bytes()),
        ("word/main.xml", presentation.as_bytes()),
        (
            "word/_rels/main.xml.rels",
            b"<Relationships><Relationship Id='s' Type='x/slide' Target='s.xml'/></Relationships>",
        ),
        ("word/s.xml", b"<p:sld><a:p><a:t>once</a:t></a:p></p:sld>"),
    ]);
    assert_eq!(extract_documents("a.pptx", &file)[0].text, "once");
}
