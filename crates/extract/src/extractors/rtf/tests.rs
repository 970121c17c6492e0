use crate::fixtures::{extract_documents, extract_outputs};

fn check(body: &str, expected: &str) {
    let [document] = &extract_documents("a.rtf", format!("{{\\rtf1{body}}}").as_bytes())[..] else {
        panic!("{body}")
    };
    assert_eq!(document.text, expected, "{body}");
}

#[test]
fn only_visible_text_is_read() {
    check(r"\pard a\par b\tab c\line d", "a\nb\tc\nd");
    check(r"a{\b b}c {\i d} e", "abc d e");
    check("a\r\nb", "ab");
    check(r"\{\}\\ a\~b\_c\-d", "{}\\ a\u{a0}b\u{2011}cd");
    check(
        r"{\fonttbl{\f0 Arial;}}{\colortbl;\red0;}{\stylesheet{\s1 Head;}}x",
        "x",
    );
    check(r"{\*\generator Word;}{\*\unknown{\par y}}x", "x");
    check(r"{\pict\wmetafile8 0102ff}{\*\shppict{\pict 00}}x", "x");
    check("{\\pict\\bin4 {{{{}x", "x");
    check(r"{\field{\*\fldinst PAGE}{\fldrslt 7}}", "7");
    check(r"a{\footnote note}b{\header head}", "ab\n\nnote\nhead");
    check(r"a{\*\annotation{\*\atnid E}words}", "a\n\nwords");
    check(
        r"{\shp{\*\shpinst\x{\sp{\sn a}{\sv b}}{\shptxt box\par}}{\shprslt no}}",
        "box",
    );
    check(r"\trowd a\cell b\cell\row c", "a\tb\nc");
    check(r"a{\deleted b}c", "ac");
    check(r"\emdash\ldblquote q\rdblquote", "—“q”");
}

#[test]
fn encodings_are_decoded() {
    check(r"\ansicpg1252 Gr\'f6\'dfe", "Größe");
    check(r"\ansicpg1251 \'cf\'f0", "Пр");
    check(r"\ansicpg932 \'93\'fa\'96\{x", "日\u{fffd}{x");
    check(
        r"{\fonttbl{\f1\fcharset204 A;}}\'e9{\f1 \'cf\'f0}\'e9",
        "éПрé",
    );
    check(r"\u1055?\u8211 ?x", "П–x");
    check(r"\uc2\u1055??x{\uc0\u1055 y}", "ПxПy");
    check(r"\u1055\'3fx", "Пx");
    check(r"\u-10179?\u-8704?", "😀");
    check(r"\u-10179?x", "\u{fffd}x");
}

#[test]
fn properties_are_read() {
    let file = r"{\rtf1{\info{\title A \b title}{\author \'c9va}{\subject S}{\keywords a, b}
        {\doccomm C}{\creatim\yr2024\mo5\dy6\hr7\min8\sec9}{\revtim\yr1999}}x}";
    let document = &extract_documents("a", file.as_bytes())[0];
    assert_eq!(document.title.as_deref(), Some("A title"));
    let metadata = &document.metadata;
    assert_eq!(metadata.author.as_deref(), Some("Éva"));
    assert_eq!(metadata.subject.as_deref(), Some("S"));
    assert_eq!(metadata.keywords, ["a", "b"]);
    assert_eq!(metadata.description.as_deref(), Some("C"));
    assert_eq!(metadata.date_ms, Some(1_714_979_289_000));
    assert_eq!(document.text, "x");
}

#[test]
fn damaged_files_are_read_as_far_as_possible() {
    check("a}}}b", "ab");
    check("{{{a", "a");
    check("\\'zz\\'", "zz");
    check(r"\u999999999999 a\bin99999999999", "a");
    let nested = "{".repeat(20_000);
    let file = format!("{{\\rtf1{nested}");
    let error = extract_outputs("a.rtf", file.as_bytes()).1;
    assert_eq!(error.map_err(|error| error.code()), Err("malformed"));
}
