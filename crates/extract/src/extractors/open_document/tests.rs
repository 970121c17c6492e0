use crate::error::ExtractError;
use crate::fixtures::{build_zip, extract_documents, extract_outputs};

const MANIFEST: (&str, &[u8]) = ("META-INF/manifest.xml", b"<manifest:manifest/>");
const TEXT: (&str, &[u8]) = ("mimetype", b"application/vnd.oasis.opendocument.text");

#[test]
fn only_visible_text_is_read() {
    let check = |body: &str, expected: &str| {
        let xml = format!(
            "<office:document-content><office:body><office:text>{body}</office:text></office:body>\
             </office:document-content>"
        );
        let file = build_zip(&[TEXT, MANIFEST, ("content.xml", xml.as_bytes())]);
        assert_eq!(
            extract_documents("a.odt", &file)[0].text,
            expected,
            "{body}"
        );
    };
    check(
        "<text:p>a<text:s/>b<text:tab/>c<text:line-break/>d</text:p>",
        "a b\tc\nd",
    );
    check(
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>x</text:p>",
        "x",
    );
    check(
        "<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body>\
         <text:p>n</text:p></text:note-body></text:note>b</text:p>",
        "ab\n\nn",
    );
    check(
        "<draw:frame><svg:desc>A cat</svg:desc></draw:frame>",
        "A cat",
    );
    check("", "");
}

#[test]
fn encrypted_damaged_and_other_files_fail() {
    let check = |members: &[(&str, &[u8])], expected: ExtractError| {
        let error = extract_outputs("a.odt", &build_zip(members)).1;
        assert_eq!(error, Err(expected));
    };
    let encrypted = b"<manifest:manifest><manifest:file-entry><manifest:encryption-data/>\
                      </manifest:file-entry></manifest:manifest>";
    let encrypted: (&str, &[u8]) = ("META-INF/manifest.xml", encrypted);
    check(
        &[TEXT, encrypted, ("content.xml", b"\x01\x02")],
        ExtractError::Encrypted("OpenDocument file"),
    );
    check(
        &[TEXT, encrypted],
        ExtractError::Encrypted("OpenDocument file"),
    );
    check(
        &[TEXT, MANIFEST],
        ExtractError::malformed("OpenDocument file", "the part \"content.xml\" is missing"),
    );
    check(
        &[
            ("mimetype", b"application/vnd.oasis.opendocument.chart"),
            MANIFEST,
        ],
        ExtractError::Unsupported("OpenDocument file of another kind"),
    );
}
