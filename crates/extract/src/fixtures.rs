//! Generated files for tests.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::error::ExtractError;
use crate::limits::Limits;
use crate::output::{ExtractedDocument, ExtractionCounts, Output};

/// Returns the complete output for a file.
pub(crate) fn extract_outputs(
    name: &str,
    bytes: &[u8],
) -> (Vec<Output>, Result<ExtractionCounts, ExtractError>) {
    let mut outputs = Vec::new();
    let counts = crate::extract(name, bytes, &Limits::default(), &mut |output| {
        outputs.push(output)
    });
    (outputs, counts)
}

/// Returns the documents of a valid file.
pub(crate) fn extract_documents(name: &str, bytes: &[u8]) -> Vec<ExtractedDocument> {
    let (outputs, counts) = extract_outputs(name, bytes);
    counts.expect(name);
    let document = |output| match output {
        Output::Document(document) => Some(*document),
        Output::Failure(failure) => panic!("{name}: {failure:?}"),
        Output::Skipped(_) => None,
    };
    outputs.into_iter().filter_map(document).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn build_zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A PDF with a page for each content stream, the font Helvetica as `F`, and this `/Info`
/// dictionary.
pub(crate) fn build_pdf(info: &str, pages: &[&str]) -> Vec<u8> {
    build_pdf_with(info, pages, "", "", &[])
}

/// Like [`build_pdf`], with these entries in the catalog and in each page. `others` are objects
/// after the pages. Pages begin with object 5 and consist of two objects each.
pub(crate) fn build_pdf_with(
    info: &str,
    pages: &[&str],
    catalog: &str,
    page_entries: &str,
    others: &[String],
) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len())
        .map(|page| format!("{} 0 R", 5 + 2 * page))
        .collect();
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>"),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.join(" "),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".into(),
        info.to_string(),
    ];
    for (page, content) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {} 0 R \
             /Resources << /Font << /F 3 0 R >> >> {page_entries} >>",
            6 + 2 * page
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    objects.extend_from_slice(others);
    assemble_pdf(&objects)
}

fn assemble_pdf(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_string();
    let mut table = "0000000000 65535 f \n".to_string();
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let (start, size) = (file.len(), objects.len() + 1);
    file +=
        &format!("xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\n");
    file += &format!("startxref\n{start}\n%%EOF\n");
    file.into_bytes()
}

/// A tar archive of these files.
pub(crate) fn build_tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in members {
        archive.extend_from_slice(&build_tar_header(name, b'0', bytes.len()));
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

/// A header of a tar archive, with the type `kind`.
pub(crate) fn build_tar_header(name: &str, kind: u8, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut write = |offset: usize, bytes: &[u8]| {
        header[offset..offset + bytes.len()].copy_from_slice(bytes);
    };
    write(0, name.as_bytes());
    write(124, format!("{size:011o}").as_bytes());
    write(148, b"        ");
    write(156, &[kind]);
    write(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// A `winmail.dat` of these attributes: their identifiers and data.
pub(crate) fn build_tnef(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut file = b"\x78\x9f\x3e\x22\0\0".to_vec();
    for (id, data) in attributes {
        file.push(1);
        file.extend_from_slice(&id.to_le_bytes());
        file.extend_from_slice(&[0, 0]);
        file.extend_from_slice(&(data.len() as u32).to_le_bytes());
        file.extend_from_slice(data);
        file.extend_from_slice(&[0, 0]);
    }
    file
}
