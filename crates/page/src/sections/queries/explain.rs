//! Shows the plan of a query or of an aggregation with its execution statistics.

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};

use crate::collection_frame::{collection_page, document_field, notice};
use crate::error::PageError;
use crate::form::FormFields;
use crate::literals::{parse_document, shell_text};
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::collections::{FILTER_EXAMPLE, field_error};
use crate::texts::{frame, queries as texts};

use super::plan::Plan;
use super::plan_tree::plan_markup;
use super::stages::{Stage, pipeline, pipeline_text, stages_from_form};

/// The verbosity that runs the query.
const EXECUTE: &str = "executionStats";
/// The verbosity that does not run the query.
const PLAN: &str = "queryPlanner";

/// Shows the plan of a query: filter, projection and sort.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let form = request.query();
    let is_asked = form.get("filter").is_some();
    let explained = if is_asked {
        query(&namespace, form).and_then(|command| explain(request, command, EXECUTE))
    } else {
        Ok(html! {})
    };
    let (result, status) = render_errors(explained)?;
    let content = html! {
        p .muted { (texts::EXPLAIN_LEAD) }
        form .find .panel method="get" action=(namespace.page_address("explain"))
            data-cancel=(frame::CANCEL) data-cancelled=(frame::CANCELLED) {
            (document_field("filter", texts::FILTER, FILTER_EXAMPLE, form.text("filter")))
            div .row .two {
                (document_field("projection", texts::PROJECTION, "{ name: 1 }", form.text("projection")))
                (document_field("sort", texts::SORT, "{ at: -1 }", form.text("sort")))
            }
            div { button .primary type="submit" { (texts::EXPLAIN_SUBMIT) } }
        }
        (result)
    };
    let response = collection_page(request, &namespace, "explain", &[], &content);
    Ok(response.with_status(status))
}

/// Renders an error of the request within the page.
fn render_errors(explained: Result<Markup, PageError>) -> Result<(Markup, StatusCode), PageError> {
    match explained {
        Ok(markup) => Ok((markup, StatusCode::OK)),
        Err(error) if error.status == StatusCode::BAD_REQUEST => {
            Ok((notice("error", &error.message), error.status))
        }
        Err(error) => Err(error),
    }
}

fn query(namespace: &Namespace, form: &FormFields) -> Result<DocumentBuf, PageError> {
    let field = |name: &str, title: &str| {
        let parsed = parse_document(form.text(name));
        parsed.map_err(|error| PageError::bad_request(field_error(title, &error.to_string())))
    };
    let mut command = doc! {
        "find": (namespace.collection.as_str()), "filter": (field("filter", texts::FILTER)?),
    };
    for (name, title) in [("projection", texts::PROJECTION), ("sort", texts::SORT)] {
        let document = field(name, title)?;
        if !document.as_document().is_empty() {
            command.push(name, document);
        }
    }
    Ok(command)
}

/// Shows the plan of an aggregation from the builder.
pub fn show_pipeline(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let stages = stages_from_form(request.form());
    let explained = pipeline(&stages).map_err(PageError::bad_request);
    let explained = explained.and_then(|pipeline| {
        let command = doc! {
            "aggregate": (namespace.collection.as_str()), "pipeline": pipeline, "cursor": {},
        };
        // A pipeline that writes is not executed.
        let writes = stages.iter().any(Stage::writes);
        explain(request, command, if writes { PLAN } else { EXECUTE })
    });
    let (result, status) = render_errors(explained)?;
    let text = pipeline_text(&stages);
    let content = html! {
        details open {
            summary { (texts::PIPELINE) }
            pre .code .wrap { (text) }
        }
        // The link back to the builder contains the stages.
        form .below method="post" action=(namespace.page_address("pipeline")) {
            (form_token(request))
            input type="hidden" name="action" value="text";
            input type="hidden" name="text" value=(text);
            button type="submit" { (texts::BACK) }
        }
        (result)
    };
    let response = collection_page(request, &namespace, "explain", &[], &content);
    Ok(response.with_status(status))
}

fn explain(request: &Request, command: DocumentBuf, verbosity: &str) -> Result<Markup, PageError> {
    let namespace = Namespace::from_request(request);
    let command = doc! {
        "explain": (Value::Document(command)), "verbosity": verbosity,
        "$db": (namespace.database.as_str()),
    };
    let answer = request.database()?.run(command)?;
    Ok(html! {
        @match Plan::read(answer.as_document()) {
            Some(plan) => { (plan_markup(&plan)) }
            None => { p .notice { (texts::NO_PLAN) } }
        }
        details .below {
            summary { (texts::RAW) }
            pre .code .wrap { (shell_text(ValueRef::Document(answer.as_document()))) }
        }
    })
}
