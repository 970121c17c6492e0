//! Tests of external programs: when they are called, and how their output is used.

use windrow_extract::{
    ConvertedDocument, ConverterChoice, DocumentKind, ExtractError, ExtractedDocument, FileContext,
    Limits, Output, PictureFormat, ProgramContent, ProgramInput, Programs, ReadMode,
    RecognizedText, convert_file, detect_read_mode, extract_with,
};

/// A converter for an extension or media type that returns its input in upper case, and text
/// recognition that returns `seen`.
#[derive(Default)]
struct FakePrograms {
    extension: &'static str,
    media_type: &'static str,
    is_fallback: bool,
    is_missing: bool,
    recognizes: bool,
    /// The output in place of the input in upper case.
    documents: Option<Vec<ConvertedDocument>>,
    calls: Vec<String>,
}

impl Programs for FakePrograms {
    fn find_converter(&self, extension: &str, media_types: &[&str]) -> Option<ConverterChoice> {
        let reads = (!extension.is_empty() && extension == self.extension)
            || media_types.contains(&self.media_type);
        reads.then(|| ConverterChoice {
            number: 7,
            media_type: self.media_type.to_owned(),
            is_fallback: self.is_fallback,
            kind: DocumentKind::Book,
        })
    }

    fn convert(
        &mut self,
        converter: &ConverterChoice,
        input: &ProgramInput<'_>,
        _: &Limits,
    ) -> Result<Vec<ConvertedDocument>, ExtractError> {
        assert_eq!(converter.number, 7);
        let ProgramContent::Bytes(bytes) = input.content else {
            panic!("no path is given");
        };
        self.calls.push(format!("convert {}", input.name));
        if self.is_missing {
            return Err(ExtractError::MissingProgram {
                program: "unfoo".into(),
                media_type: self.media_type.into(),
            });
        }
        Ok(self.documents.clone().unwrap_or_else(|| {
            vec![ConvertedDocument {
                media_type: Some("text/plain".into()),
                bytes: bytes.to_ascii_uppercase(),
                ..ConvertedDocument::default()
            }]
        }))
    }

    fn recognizes_text(&self) -> bool {
        self.recognizes
    }

    fn recognize_text(
        &mut self,
        format: PictureFormat,
        _: &ProgramInput<'_>,
        _: &Limits,
    ) -> RecognizedText {
        self.calls.push(format!("recognize {format:?}"));
        RecognizedText {
            text: "seen\n".into(),
            ..RecognizedText::default()
        }
    }
}

struct ExtractedFile {
    documents: Vec<ExtractedDocument>,
    failures: Vec<String>,
    result: Result<(), ExtractError>,
}

fn read(programs: &mut FakePrograms, name: &str, bytes: &[u8]) -> ExtractedFile {
    let (mut documents, mut failures) = (Vec::new(), Vec::new());
    let limits = Limits::default();
    let context = FileContext {
        programs: Some(programs),
        ..FileContext::new(&limits)
    };
    let result = extract_with(name, bytes, context, &mut |output| match output {
        Output::Document(document) => documents.push(*document),
        Output::Failure(failure) => failures.push(failure.error.to_string()),
        Output::Skipped(skipped) => failures.push(skipped.format.to_owned()),
    });
    ExtractedFile {
        documents,
        failures,
        result: result.map(|_| ()),
    }
}

fn foo() -> FakePrograms {
    FakePrograms {
        extension: "foo",
        media_type: "application/x-foo",
        ..FakePrograms::default()
    }
}

/// A PDF with a page whose content has a font `F` and a picture `I`.
fn build_pdf(content: &str) -> Vec<u8> {
    format!(
        "%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n\
         2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n\
         3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources \
         << /Font << /F 5 0 R >> /XObject << /I 6 0 R >> >> >> endobj\n\
         4 0 obj << /Length {} >>\nstream\n{content}\nendstream endobj\n\
         5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n\
         6 0 obj << /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 \
         /ColorSpace /DeviceGray /Length 1 >>\nstream\nx\nendstream endobj\n\
         trailer << /Root 1 0 R /Size 7 >>\n%%EOF\n",
        content.len()
    )
    .into_bytes()
}

/// The header of a PNG with these dimensions in pixels.
fn build_png(side: u8) -> Vec<u8> {
    let header = [&b"IHDR\0\0\0"[..], &[side, 0, 0, 0, side, 8, 0, 0, 0, 0]].concat();
    let chunk = [&b"\0\0\0\x0d"[..], &header, b"\0\0\0\0"].concat();
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk,
        b"\0\0\0\0IEND\xae\x42\x60\x82",
    ]
    .concat()
}

#[test]
fn a_converter_reads_files_with_its_extension() {
    for bytes in [&b"words"[..], b"\0\x01\xffwords"] {
        let mut programs = foo();
        let found = read(&mut programs, "a.FOO", bytes);
        let document = &found.documents[0];
        assert!(document.text.ends_with("WORDS"));
        assert_eq!(document.kind, DocumentKind::Book);
        let converter = document.metadata.converter.as_deref();
        assert_eq!(converter, Some("application/x-foo"));
        assert_eq!(programs.calls, ["convert a.FOO"]);
    }
    let mut programs = foo();
    assert_eq!(
        read(&mut programs, "a.txt", b"words").documents[0].text,
        "words"
    );
    assert!(programs.calls.is_empty());
}

#[test]
fn a_converted_file_is_not_read_into_memory() {
    let mut programs = foo();
    let mode = detect_read_mode("a.foo", b"\0words", Some(&programs));
    assert!(matches!(mode, ReadMode::Convert));
    let (limits, mut texts) = (Limits::default(), Vec::new());
    programs.documents = Some(vec![ConvertedDocument {
        bytes: b"all of it".to_vec(),
        ..ConvertedDocument::default()
    }]);
    let context = FileContext {
        programs: Some(&mut programs),
        ..FileContext::new(&limits)
    };
    let counts = convert_file("a.foo", b"\0words", context, &mut |output| {
        if let Output::Document(document) = output {
            texts.push(document.text);
        }
    });
    assert_eq!(
        (counts.unwrap().documents, texts),
        (1, vec!["all of it".to_owned()])
    );
}

#[test]
fn a_fallback_reads_only_what_the_extractor_does_not() {
    let fallback = || FakePrograms {
        media_type: "application/pdf",
        is_fallback: true,
        ..FakePrograms::default()
    };
    let good = build_pdf("BT /F 12 Tf 72 700 Td (words) Tj ET");
    let mut programs = fallback();
    let found = read(&mut programs, "a.pdf", &good);
    assert!(found.result.is_ok() && programs.calls.is_empty());
    let mut programs = fallback();
    let found = read(&mut programs, "a.pdf", b"%PDF-1.4 damaged");
    assert_eq!(found.documents[0].text, "%PDF-1.4 DAMAGED");
    assert!(found.result.is_ok());
    // The error is that of the extractor, unless the program is missing.
    let mut programs = fallback();
    programs.documents = Some(vec![ConvertedDocument {
        media_type: Some("a/b".into()),
        ..ConvertedDocument::default()
    }]);
    let found = read(&mut programs, "a.pdf", b"%PDF-1.4 damaged");
    assert_eq!(found.result.unwrap_err().code(), "malformed");
    let mut programs = FakePrograms {
        is_missing: true,
        ..fallback()
    };
    let error = read(&mut programs, "a.pdf", b"%PDF-1.4 damaged")
        .result
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "missing converter unfoo for application/pdf"
    );
}

#[test]
fn a_missing_program_is_a_failure_of_its_member() {
    let mut programs = FakePrograms {
        is_missing: true,
        ..foo()
    };
    let mail = b"From: a@b\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nwords\n--x\n\
        Content-Disposition: attachment; filename=a.foo\nContent-Type: application/x-foo\n\nwords\n--x--\n";
    let found = read(&mut programs, "a.eml", mail);
    assert_eq!(
        found.failures,
        ["missing converter unfoo for application/x-foo"]
    );
    assert!(found.result.is_ok() && found.documents.len() == 1);
}

#[test]
fn members_of_a_converter_are_documents() {
    let member = |name: &str, media_type: Option<&str>, bytes: &[u8]| ConvertedDocument {
        inner_name: Some(name.into()),
        media_type: media_type.map(str::to_owned),
        bytes: bytes.to_vec(),
        properties: vec![("title".into(), format!("Title of {name}"))],
        ..ConvertedDocument::default()
    };
    let mut programs = FakePrograms {
        documents: Some(vec![
            member("1", Some("text/html"), b"<p>one"),
            member("b.md", None, b"# two"),
            member(
                "3",
                Some("message/rfc822"),
                b"From: a@b\nSubject: three\n\nmail",
            ),
            member("4", None, b"\x7fELF"),
            ConvertedDocument {
                charset: Some("latin1".into()),
                media_type: Some("text/plain".into()),
                bytes: b"f\xfcnf".to_vec(),
                ..ConvertedDocument::default()
            },
        ]),
        ..foo()
    };
    let found = read(&mut programs, "a.foo", b"");
    let documents: Vec<(Option<&str>, &str, &str)> = found
        .documents
        .iter()
        .map(|it| {
            let title = it.title.as_deref().unwrap_or_default();
            (it.inner_path.as_deref(), title, it.text.as_str())
        })
        .collect();
    assert_eq!(
        documents,
        [
            (Some("!/1"), "Title of 1", "one"),
            (Some("!/b.md"), "two", "two"),
            (Some("!/3"), "three", "mail"),
            (None, "", "fünf"),
        ]
    );
    assert_eq!(found.failures, ["ELF program"]);
}

#[test]
fn text_of_pictures_is_recognized_if_asked_for() {
    let picture = build_png(40);
    for (recognizes, expected) in [(true, true), (false, false)] {
        let mut programs = FakePrograms {
            recognizes,
            ..FakePrograms::default()
        };
        let found = read(&mut programs, "a.png", &picture);
        let document = &found.documents[0];
        assert_eq!(
            document.text.ends_with("seen"),
            expected,
            "{:?}",
            document.text
        );
        assert_eq!(document.kind, DocumentKind::Image);
        assert_eq!(
            programs.calls,
            if expected {
                vec!["recognize Picture"]
            } else {
                vec![]
            }
        );
        assert_eq!(
            document.metadata.converter.as_deref(),
            expected.then_some("ocr")
        );
    }
    let mut programs = FakePrograms {
        recognizes: true,
        ..FakePrograms::default()
    };
    let found = read(&mut programs, "icon.png", &build_png(16));
    assert!(found.documents.len() == 1 && programs.calls.is_empty());
}

#[test]
fn pages_that_are_pictures_are_recognized() {
    let scan = build_pdf("q 1 0 0 1 0 0 cm /I Do Q");
    let mut programs = FakePrograms {
        recognizes: true,
        ..FakePrograms::default()
    };
    let found = read(&mut programs, "scan.pdf", &scan);
    assert_eq!(found.result, Ok(()));
    assert_eq!(programs.calls, ["recognize Pdf"]);
    assert_eq!(
        (found.documents.len(), found.documents[0].text.as_str()),
        (1, "seen")
    );
}
