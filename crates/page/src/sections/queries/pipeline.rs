//! The builder of aggregations: a form with all stages, and a preview of the output of each stage.

use hyper::StatusCode;
use maud::{Markup, html};
use windrow_document::{ArrayBuf, DocumentBuf, ValueRef, doc};

use crate::collection_frame::{collection_page, notice};
use crate::document_tree::tree;
use crate::error::PageError;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::{frame, queries as texts};

use super::stages::{
    STAGES_MAX, Stage, pipeline, pipeline_text, stages_from_form, stages_from_text,
};

/// The number of documents in a preview.
const PREVIEW_MAX: usize = 5;
/// The number of documents in the results.
const RESULTS_MAX: usize = 50;
/// The time limit of a preview.
const PREVIEW_MILLIS_MAX: i64 = 10_000;

/// Shows the builder with the pipeline in the address, or with one stage.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let text = request.query().text("pipeline");
    let (stages, message) = match (text, stages_from_text(text)) {
        ("", _) => (vec![Stage::example("$match")], None),
        (_, Ok(stages)) => (stages, None),
        (_, Err(message)) => (vec![Stage::example("$match")], Some(message)),
    };
    Ok(builder(request, &stages, message.as_deref(), None))
}

/// Handles a button of the builder: adds, moves or removes a stage, or shows the results.
pub fn change(request: &Request) -> Result<Response, PageError> {
    let form = request.form();
    let mut stages = stages_from_form(form);
    let action = form.text("action");
    let (name, at) = action.split_once(' ').unwrap_or((action, ""));
    let at = at.parse::<usize>().ok().filter(|at| *at < stages.len());
    match (name, at) {
        ("add", _) if stages.len() < STAGES_MAX => stages.push(Stage::example(form.text("new"))),
        ("remove", Some(at)) => drop(stages.remove(at)),
        ("up", Some(at)) if at > 0 => stages.swap(at - 1, at),
        ("down", Some(at)) if at + 1 < stages.len() => stages.swap(at, at + 1),
        ("text", _) => match stages_from_text(form.text("text")) {
            Ok(read) => stages = read,
            Err(message) => return Ok(builder(request, &stages, Some(&message), None)),
        },
        _ => {}
    }
    if name != "results" {
        return Ok(builder(request, &stages, None, None));
    }
    let readable = readable_part(&stages);
    match results(request, &readable, RESULTS_MAX) {
        Ok(found) => Ok(builder(request, &stages, None, Some(&found))),
        Err(error) if error.status == StatusCode::BAD_REQUEST => {
            Ok(builder(request, &stages, Some(&error.message), None))
        }
        Err(error) => Err(error),
    }
}

/// Returns the stages before the first one that writes.
fn readable_part(stages: &[Stage]) -> Vec<Stage> {
    stages
        .iter()
        .take_while(|it| !it.writes())
        .cloned()
        .collect()
}

/// Runs an aggregation that writes.
pub fn run(request: &Request) -> Result<Response, PageError> {
    let stages = stages_from_form(request.form());
    let pipeline = pipeline(&stages).map_err(PageError::bad_request)?;
    let command = command(&Namespace::from_request(request), pipeline);
    request.database()?.documents(command, 1)?;
    let notice = notice("good", texts::WRITTEN);
    Ok(builder(request, &stages, None, Some(&notice)))
}

/// Shows the output of the stage whose number is in the field `upto`.
pub fn preview(request: &Request) -> Result<Response, PageError> {
    let form = request.form();
    let stages = stages_from_form(form);
    let upto = form.number("upto").map_or(usize::MAX, |it| it as usize);
    let part: Vec<Stage> = stages.into_iter().take(upto.saturating_add(1)).collect();
    if part.iter().any(Stage::writes) {
        return Ok(Response::html(html! { p .muted { (texts::WRITES) } }));
    }
    match results(request, &part, PREVIEW_MAX) {
        Ok(found) => Ok(Response::html(found)),
        // A stage is often invalid while it is edited, so the status is 200.
        Err(error) => Ok(Response::html(notice("error", &error.message))),
    }
}

fn command(namespace: &Namespace, pipeline: ArrayBuf) -> DocumentBuf {
    doc! {
        "aggregate": (namespace.collection.as_str()), "pipeline": pipeline, "cursor": {},
        "$db": (namespace.database.as_str()),
    }
}

/// Returns the first documents of the output of stages.
fn results(request: &Request, stages: &[Stage], count_max: usize) -> Result<Markup, PageError> {
    let pipeline = pipeline(stages).map_err(PageError::bad_request)?;
    let limit = doc! { "$limit": (count_max as i64 + 1) };
    let mut limited = windrow_document::ArrayBuilder::new();
    pipeline.iter().for_each(|stage| limited.push(stage));
    limited.push(ValueRef::Document(limit.as_document()));
    let mut command = command(&Namespace::from_request(request), limited.finish());
    command.push("maxTimeMS", PREVIEW_MILLIS_MAX);
    let mut documents = request.database()?.documents(command, count_max + 1)?;
    let has_more = documents.len() > count_max;
    documents.truncate(count_max);
    Ok(html! {
        @if documents.is_empty() {
            p .muted { (texts::NO_RESULTS) }
        } @else {
            p .muted .small { (texts::first(documents.len(), has_more)) }
            ol .documents { @for document in &documents { li .panel { (tree(document.as_document())) } } }
        }
    })
}

fn builder(
    request: &Request,
    stages: &[Stage],
    message: Option<&str>,
    results: Option<&Markup>,
) -> Response {
    let namespace = Namespace::from_request(request);
    let writes = stages.iter().any(Stage::writes);
    let address = |page: &str| namespace.page_address(page);
    let content = html! {
        @if let Some(message) = message { (notice("error", message)) }
        p .muted { (texts::PIPELINE_LEAD) }
        form #builder method="post" action=(address("pipeline")) data-preview=(address("pipeline/preview"))
            data-cancel=(frame::CANCEL) data-cancelled=(frame::CANCELLED) {
            (form_token(request))
            @for (at, stage) in stages.iter().enumerate() { (stage_part(at, stages.len(), stage)) }
            div .row .add {
                label .row for="new" { (texts::STAGE_KIND) }
                select #new name="new" { @for (kind, _) in texts::KINDS { option value=(kind) { (kind) } } }
                button type="submit" name="action" value="add" { (texts::ADD) }
            }
            div .row .actions {
                button .primary type="submit" name="action" value="results" { (texts::RUN) }
                button type="submit" formaction=(address("explain")) { (texts::EXPLAIN_PIPELINE) }
                @if writes && request.can_write() {
                    button .danger type="submit" formaction=(address("pipeline/run")) data-confirm=(texts::CONFIRM_WRITE) { (texts::RUN_WRITING) }
                }
            }
            details .below {
                summary { (texts::AS_TEXT) }
                div .stack {
                    label .visually-hidden for="text" { (texts::AS_TEXT) }
                    textarea #text name="text" rows="12" spellcheck="false" { "\n" (pipeline_text(stages)) }
                    div { button type="submit" name="action" value="text" { (texts::AS_TEXT_SUBMIT) } }
                }
            }
        }
        @if let Some(results) = results {
            h2 #results { (texts::RESULTS) }
            (results)
        }
    };
    let response = collection_page(
        request,
        &namespace,
        "pipeline",
        &["pipeline.js", "confirm.js"],
        &content,
    );
    match message {
        Some(_) => response.with_status(StatusCode::BAD_REQUEST),
        None => response,
    }
}

fn stage_part(at: usize, count: usize, stage: &Stage) -> Markup {
    let number = at + 1;
    let rows = stage.text.lines().count().clamp(3, 16);
    let is_known = texts::KINDS.iter().any(|(kind, _)| *kind == stage.kind);
    html! {
        fieldset .stage .panel {
            legend { (texts::stage(number)) }
            div .stage-input {
                div .row {
                    select name="kind" aria-label=(texts::stage_button_label(texts::STAGE_KIND, number)) {
                        @for (kind, _) in texts::KINDS { option value=(kind) selected[*kind == *stage.kind] { (kind) } }
                        @if !is_known { option value=(stage.kind) selected { (stage.kind) } }
                    }
                    label .row { input type="checkbox" name="enabled" value=(at) checked[stage.is_enabled]; (texts::ENABLED) }
                    span .stage-buttons {
                        @if at > 0 { (stage_button("up", texts::UP, at)) }
                        @if number < count { (stage_button("down", texts::DOWN, at)) }
                        (stage_button("remove", texts::REMOVE, at))
                    }
                }
                textarea name="stage" rows=(rows) spellcheck="false" aria-label=(texts::stage(number)) { "\n" (stage.text) }
            }
            div .stage-output {
                button .quiet .stage-cancel type="button" hidden aria-label=(texts::stage_button_label(texts::CANCEL_PREVIEW, number)) { (frame::CANCEL) }
                div .stage-preview data-upto=(at) data-cancelled=(frame::CANCELLED) aria-live="polite" role="group"
                    aria-label=(texts::stage_button_label(texts::PREVIEW, number)) {}
            }
        }
    }
}

fn stage_button(action: &str, name: &str, at: usize) -> Markup {
    html! {
        button .quiet type="submit" name="action" value=(format!("{action} {at}"))
            aria-label=(texts::stage_button_label(name, at + 1)) { (name) }
    }
}
