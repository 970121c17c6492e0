//! Recognizes the text of pictures and of scanned pages with Tesseract.
//!
//! ```text
//! picture ───────────────────────▶ tesseract ─▶ text
//! PDF ─ pdftoppm ─▶ page 1, 2, … ─▶ tesseract ─▶ text
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windrow_extract::{ExtractError, PictureFormat, RecognizedText};

use crate::command::find_program;
use crate::process::RunError;
use crate::settings::Recognition;

/// The resolution of rendered pages in dots per inch. Tesseract's manual recommends 300. At 200,
/// letters of the usual size are recognized as well, in half the time.
const PAGE_RESOLUTION: &str = "200";

/// Runs a program in the sandbox.
pub(crate) type RunProgram<'r> =
    dyn FnMut(&'static str, Vec<OsString>) -> Result<Vec<u8>, ProgramError> + 'r;

/// The reason why a program failed.
#[derive(Debug)]
pub(crate) enum ProgramError {
    Missing,
    Failed(RunError),
}

/// Returns the text of the picture or PDF `file`. `work` is a folder for rendered pages.
pub(crate) fn recognize(
    recognition: &Recognition,
    format: PictureFormat,
    file: &Path,
    work: &Path,
    run: &mut RunProgram<'_>,
) -> RecognizedText {
    let mut recognized = RecognizedText::default();
    let text = &mut recognized;
    let result = match format {
        PictureFormat::Picture => recognize_picture(recognition, file, run, text),
        PictureFormat::Pdf => recognize_pages(recognition, file, work, run, text),
    };
    recognized.error = result.err();
    recognized
}

fn recognize_picture(
    recognition: &Recognition,
    file: &Path,
    run: &mut RunProgram<'_>,
    recognized: &mut RecognizedText,
) -> Result<(), ExtractError> {
    let languages = recognition.languages.join("+");
    let arguments = vec![file.into(), "stdout".into(), "-l".into(), languages.into()];
    let output = run(Recognition::PROGRAM, arguments)
        .map_err(|error| convert_error(error, Recognition::PROGRAM, "image/*"))?;
    // Tesseract ends each page with a form feed.
    let text = String::from_utf8_lossy(&output).replace('\u{c}', "\n");
    recognized.text.push_str(&text);
    Ok(())
}

fn recognize_pages(
    recognition: &Recognition,
    file: &Path,
    work: &Path,
    run: &mut RunProgram<'_>,
    recognized: &mut RecognizedText,
) -> Result<(), ExtractError> {
    for number in 1..=recognition.pages_max.saturating_add(1) {
        let rendered = render_page(file, work, number, run);
        let page = match rendered {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(()),
            // The renderer fails after the last page.
            Err(ProgramError::Failed(RunError::Failed(..))) if number > 1 => return Ok(()),
            Err(error) => {
                return Err(convert_error(
                    error,
                    Recognition::RENDERER,
                    "application/pdf",
                ));
            }
        };
        if number > recognition.pages_max {
            recognized.truncated = true;
            break;
        }
        recognize_picture(recognition, &page, run, recognized)?;
        // If this fails, the next page overwrites the file, or the folder is removed.
        let _ = std::fs::remove_file(&page);
    }
    Ok(())
}

/// Renders a page as a picture. Returns `None` if the page does not exist.
fn render_page(
    file: &Path,
    work: &Path,
    number: u32,
    run: &mut RunProgram<'_>,
) -> Result<Option<PathBuf>, ProgramError> {
    let number: OsString = number.to_string().into();
    let options = ["-r", PAGE_RESOLUTION, "-gray", "-singlefile", "-f"];
    let mut arguments: Vec<OsString> = options.map(OsString::from).to_vec();
    arguments.extend([number.clone(), "-l".into(), number, file.into()]);
    arguments.push(work.join("page").into());
    run(Recognition::RENDERER, arguments)?;
    let page = work.join("page.pgm");
    Ok(Some(page).filter(|page| page.exists()))
}

fn convert_error(error: ProgramError, program: &str, media_type: &str) -> ExtractError {
    match error {
        ProgramError::Missing => ExtractError::MissingProgram {
            program: program.to_owned(),
            media_type: media_type.to_owned(),
        },
        ProgramError::Failed(error) => ExtractError::ProgramFailed {
            program: program.to_owned(),
            reason: error.to_string(),
        },
    }
}

impl Recognition {
    /// Returns the configured languages that Tesseract has not installed.
    ///
    /// # Errors
    /// Fails with a message if Tesseract cannot be run.
    pub fn missing_languages(&self) -> Result<Vec<String>, String> {
        let program = find_program(Self::PROGRAM);
        let program = program.ok_or_else(|| format!("{} is not installed", Self::PROGRAM))?;
        // It reads no untrusted file, so it runs without the sandbox.
        let listed = Command::new(program)
            .arg("--list-langs")
            .stdin(Stdio::null())
            .output();
        let listed = listed.map_err(|error| format!("{}: {error}", Self::PROGRAM))?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let is_missing = |name: &&String| text.lines().all(|line| line.trim() != name.as_str());
        Ok(self.languages.iter().filter(is_missing).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_rendered_until_there_are_no_more() {
        let work = tempfile::tempdir().unwrap();
        let recognition = Recognition::new(vec!["eng".into(), "deu".into()]);
        let mut calls = Vec::new();
        let mut run = |program: &'static str, arguments: Vec<OsString>| {
            let words: Vec<String> = arguments
                .iter()
                .map(|it| it.display().to_string())
                .collect();
            calls.push(program);
            if program == "tesseract" {
                assert_eq!(words[1..], ["stdout", "-l", "eng+deu"]);
                return Ok(b"words\x0c".to_vec());
            }
            if calls.len() < 4 {
                std::fs::write(work.path().join("page.pgm"), "").unwrap();
            }
            Ok(Vec::new())
        };
        let text = recognize(
            &recognition,
            PictureFormat::Pdf,
            Path::new("/a.pdf"),
            work.path(),
            &mut run,
        );
        assert_eq!(
            (text.text.as_str(), text.truncated, text.error),
            ("words\nwords\n", false, None)
        );
        assert_eq!(
            calls,
            ["pdftoppm", "tesseract", "pdftoppm", "tesseract", "pdftoppm"]
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let recognition = Recognition::new(vec!["eng".into()]);
        for (format, expected) in [
            (
                PictureFormat::Picture,
                "missing converter tesseract for image/*",
            ),
            (
                PictureFormat::Pdf,
                "missing converter pdftoppm for application/pdf",
            ),
        ] {
            let mut run = |_: &'static str, _| Err(ProgramError::Missing);
            let found = recognize(
                &recognition,
                format,
                Path::new("/a"),
                Path::new("/"),
                &mut run,
            );
            assert_eq!(found.error.unwrap().to_string(), expected);
        }
    }
}
