//! Imports: of the text in a form, and of a file of any size that a script uploads.

use std::io::{self, Read};

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::DocumentBuf;

use crate::body::BodyReader;
use crate::error::PageError;
use crate::imports::{Import, ImportEnd};
use crate::literals::DocumentStream;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::collections as texts;

use super::csv::CsvDocuments;
use super::insert::{check_count, insert_all, insert_batches, reading_error};

/// Shows the form. A script uploads the file and shows the progress.
pub fn import_form(request: &Request, namespace: &Namespace) -> Markup {
    html! {
        section .panel .below {
            h2 .first { (texts::IMPORT) }
            p .muted { (texts::IMPORT_LEAD) }
            p #import-error .notice .error role="alert" hidden {}
            form #import .stack method="post" action=(namespace.page_address("import"))
                data-file=(namespace.page_address("import/file"))
                data-progress=(namespace.page_address("import/progress"))
                data-cancel=(namespace.page_address("import/cancel"))
                data-both=(texts::IMPORT_BOTH) {
                (form_token(request))
                label for="import-format" { (texts::FORMAT) }
                select #import-format name="format" {
                    @for (value, name) in texts::IMPORT_FORMATS { option value=(value) { (name) } }
                }
                div #import-file-field hidden .stack {
                    label for="import-file" { (texts::IMPORT_FILE) }
                    input #import-file type="file" accept=".json,.jsonl,.ndjson,.csv";
                }
                label for="import-text" { (texts::IMPORT_TEXT) }
                textarea #import-text name="text" rows="8" spellcheck="false" {}
                div .row {
                    button .primary type="submit" { (texts::IMPORT_SUBMIT) }
                    button #import-cancel type="button" hidden { (texts::IMPORT_CANCEL) }
                }
            }
            div #import-progress .import-progress {}
        }
    }
}

/// Inserts the documents of a form's text.
pub fn import_text(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let form = request.form();
    let documents = documents(form.text("text").as_bytes(), form.text("format"));
    let documents = check_count(documents.collect::<Result<_, _>>()?)?;
    let count = insert_all(&mut request.database()?, &namespace, documents)?;
    Ok(Response::redirect(&result_address(
        &namespace,
        count as u64,
    )))
}

/// Inserts the documents of a file while it is received. Documents inserted before an error remain.
pub fn import_file(request: &Request, body: BodyReader) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let import = request
        .site()
        .imports
        .begin(request.query().text("import"))?;
    let result = insert_file(request, &namespace, body, &import);
    let is_interrupted = import.is_interrupted() || request.interrupt().is_interrupted();
    let end = match &result {
        Ok(true) => ImportEnd::Complete,
        Ok(false) => ImportEnd::Cancelled,
        Err(_) if is_interrupted => ImportEnd::Cancelled,
        Err(error) => ImportEnd::Failed(error.message.clone()),
    };
    import.finish(end.clone());
    match end {
        ImportEnd::Cancelled => Ok(Response::text("")),
        _ => result.map(|_| Response::text("")),
    }
}

fn insert_file(
    request: &Request,
    namespace: &Namespace,
    body: BodyReader,
    import: &Import,
) -> Result<bool, PageError> {
    // A batch must be complete before it is inserted, so that the reported number of documents is
    // correct.
    let mut database = request.lasting_database()?;
    let source = CountedReader { body, import };
    let mut documents = documents(source, request.query().text("format"));
    let is_complete = insert_batches(&mut database, namespace, &mut documents, &mut |count| {
        import.add_documents(count);
        !import.is_interrupted()
    })?;
    match import.documents() {
        0 if is_complete => Err(PageError::bad_request(texts::NOTHING_TO_INSERT)),
        _ => Ok(is_complete),
    }
}

/// Returns the documents of a source in the given format.
fn documents<'s>(
    source: impl Read + 's,
    format: &str,
) -> Box<dyn Iterator<Item = Result<DocumentBuf, PageError>> + 's> {
    let failed = |read: Result<DocumentBuf, String>| read.map_err(|error| reading_error(&error));
    match format {
        "csv" => Box::new(CsvDocuments::new(source).map(failed)),
        _ => Box::new(DocumentStream::new(source).map(failed)),
    }
}

/// Adds the received bytes to the progress of an import.
struct CountedReader<'i> {
    body: BodyReader,
    import: &'i Import,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.import.is_interrupted() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let count = self.body.read(bytes)?;
        self.import.add_bytes(count);
        Ok(count)
    }
}

fn result_address(namespace: &Namespace, count: u64) -> String {
    format!("{}?done={count}", namespace.page_address("transfer"))
}

/// Returns the progress of an import for the script of its page.
pub fn show_progress(request: &Request) -> Result<Response, PageError> {
    let query = request.query();
    let Some(import) = request.site().imports.find(query.text("import")) else {
        let unknown =
            html! { p .notice .error role="alert" data-end="unknown" { (texts::IMPORT_UNKNOWN) } };
        return Ok(Response::html(unknown));
    };
    let total = query.text("total").parse().unwrap_or(0);
    let (bytes, documents) = (import.bytes(), import.documents());
    let markup = match import.end() {
        None => html! {
            progress max=(total) value=(bytes.min(total)) aria-label=(texts::IMPORT_PROGRESS) {}
            p .muted { (texts::imported(bytes, total, documents)) }
        },
        Some(ImportEnd::Complete) => {
            let address = result_address(&Namespace::from_request(request), documents);
            html! { p .notice .good data-end="complete" data-address=(address) { (texts::inserted(documents as i64)) } }
        }
        Some(ImportEnd::Cancelled) => html! {
            p .notice .warning role="status" data-end="cancelled" {
                (texts::import_ended(documents, texts::IMPORT_CANCELLED))
            }
        },
        Some(ImportEnd::Failed(message)) => html! {
            p .notice .error role="alert" data-end="failed" { (texts::import_ended(documents, &message)) }
        },
    };
    Ok(Response::html(markup))
}

/// Requests the end of an import before its next batch.
pub fn cancel(request: &Request) -> Result<Response, PageError> {
    let found = request.site().imports.find(request.form().text("import"));
    let import = found.ok_or_else(|| PageError::not_found(texts::IMPORT_UNKNOWN))?;
    import.interrupt();
    Ok(Response::text("").with_status(StatusCode::NO_CONTENT))
}
