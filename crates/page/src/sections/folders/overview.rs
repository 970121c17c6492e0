//! The overview: indexed folders, the active run and the newest runs.

use std::time::Duration;

use maud::{Markup, html};
use windrow_document::DocumentBuf;
use windrow_file_query::TimeContext;
use windrow_file_search::ValueCount;

use super::counts::{DATABASE, count, count_read, failures_by_class, folders, newest_runs};
use super::frame::{FRAME, PATH, RunForm, run_form, stop_form};
use super::run::{EndedRun, show_progress, show_stages};
use super::{configuration, failures};
use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::folder_services::{RunProgress, RunRequest};
use crate::form::FormFields;
use crate::request::Request;
use crate::response::Response;
use crate::route::PollFunction;
use crate::shell::page;
use crate::show::{duration, grouped, visible};
use crate::texts::folders as texts;

/// The path of the event stream with the active run.
pub const LIVE_PATH: &str = "/folders/live";
/// The polling interval of the active run.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Shows the page.
///
/// # Errors
/// Fails if the database fails.
pub fn show(request: &Request) -> Result<Response, PageError> {
    let mut database = request.database()?;
    let has_files = database.has_collection(DATABASE, "documents")?;
    let can_stop = progress(request).is_some_and(|it| it.can_stop);
    let start = RunForm {
        retries: false,
        label: texts::START,
        is_hidden: can_stop,
    };
    let is_stopped = request.query().get("stopped").is_some();
    let content = html! {
        div .row .spread {
            h1 { (texts::TITLE) }
            div .row {
                (stop_form(request, can_stop))
                (run_form(request, start))
            }
        }
        @if is_stopped { p .notice role="status" { (texts::STOPPED) } }
        div #run data-live=[request.site().services.folders.as_ref().map(|_| LIVE_PATH)]
            data-live-event="run" { (now(request)) }
        @if has_files {
            (stored(&mut database)?)
        } @else {
            div .empty {
                p { (texts::NO_FILES) }
                p { (texts::HOW_TO_INDEX) }
                p { code { "windrow index ~/Documents --data DIR" } }
            }
        }
        (configuration::link(request))
    };
    Ok(page(request, FRAME, &content))
}

/// Creates the polling function for the active run.
///
/// # Errors
/// Never fails.
pub fn start_polling(_: &Request) -> Result<PollFunction, PageError> {
    Ok(Box::new(|request| Ok(now(request).into_string())))
}

fn progress(request: &Request) -> Option<RunProgress> {
    let services = request.site().services.folders.as_ref()?;
    (services.progress)()
}

fn now(request: &Request) -> Markup {
    let services = request.site().services.folders.as_ref();
    // The message may contain names of files, which other users must not see.
    let services = services.filter(|_| request.is_owner());
    let problem = services.and_then(|services| (services.run_problem)());
    html! {
        @if let Some(progress) = progress(request) {
            div data-running data-can-stop=[progress.can_stop.then_some("")] { h2 { (texts::NOW) } (show_progress(&progress)) }
        } @else if let Some(problem) = problem {
            p .notice .error role="alert" { (texts::run_failed(&problem)) }
        }
    }
}

fn stored(database: &mut Database) -> Result<Markup, PageError> {
    let runs = newest_runs(database)?;
    let counts = [
        (texts::DOCUMENTS, count_read(database)?),
        (texts::FAILURES, count(database, "failures")?),
        (texts::SKIPPED, count(database, "skipped")?),
    ];
    let by_class = failures_by_class(database)?;
    let ended: Vec<EndedRun> = runs
        .iter()
        .map(|run| EndedRun::new(run.as_document()))
        .collect();
    Ok(html! {
        dl .cards {
            @for (name, count) in counts { div { dt { (name) } dd { (grouped(count)) } } }
            @if let Some(last) = ended.first() {
                div { dt { (texts::LAST_RUN) } dd { (time(last.ended_ms)) } }
            }
        }
        (indexed_folders(database, &runs)?)
        @if !by_class.is_empty() {
            h2 { (texts::BY_REASON) }
            ul .reasons {
                @for ValueCount { value: class, count } in &by_class {
                    li { a .panel href=(FormFields::default().and("class", class).address(failures::PATH)) {
                        strong { (grouped(*count)) } " " (texts::class(class))
                    } }
                }
            }
        }
        @if let Some(last) = ended.first().filter(|run| !run.stages.is_empty() && run.files_read > 0) {
            h2 { (texts::PIPELINE) }
            (show_stages(&last.stages))
        }
        (run_table(&ended))
    })
}

fn indexed_folders(database: &mut Database, runs: &[DocumentBuf]) -> Result<Markup, PageError> {
    let folders = folders(database, runs)?;
    Ok(html! {
        @if !folders.is_empty() {
            h2 { (texts::INDEXED_FOLDERS) }
            (data_table(
                texts::INDEXED_FOLDERS,
                "",
                &[Column::text(texts::FOLDER), Column::number(texts::DOCUMENTS)],
                &html! {
                    @for ValueCount { value: folder, count } in &folders {
                        tr {
                            td { a href=(FormFields::default().and("dir", folder).address("/search")) { bdi { (visible(folder)) } } }
                            td .number { (grouped(*count)) }
                        }
                    }
                },
            ))
        }
    })
}

fn run_table(runs: &[EndedRun]) -> Markup {
    html! {
        @if !runs.is_empty() {
            h2 { (texts::RUNS) }
            (data_table(
                texts::RUNS,
                "",
                &[
                    Column::text(texts::ENDED),
                    Column::number(texts::TOOK),
                    Column::number(texts::READ),
                    Column::text(texts::SPEED),
                    Column::number(texts::NEW),
                    Column::number(texts::CHANGED),
                    Column::number(texts::REMOVED),
                    Column::number(texts::FAILED),
                ],
                &html! {
                    @for run in runs {
                        tr {
                            td .nowrap { (time(run.ended_ms)) }
                            td .number { (duration(run.seconds)) }
                            td .number { (grouped(run.files_read)) }
                            td .nowrap { (run.speed().unwrap_or_default()) }
                            @for count in run.changes { td .number { (grouped(count)) } }
                        }
                    }
                },
            ))
        }
    }
}

fn time(ms: i64) -> Markup {
    let shown = TimeContext::system().format_ms(ms);
    let minutes = shown
        .rsplit_once(':')
        .map_or(shown.as_str(), |(minutes, _)| minutes);
    html! { time datetime=(shown) { (minutes) } }
}

/// Starts a run for the folders of the newest runs.
///
/// # Errors
/// Fails if the browser belongs to another user, or if the run cannot start.
pub fn start_run(request: &Request) -> Result<Response, PageError> {
    let services = request.owner_services()?;
    let mut database = request.database()?;
    let runs = newest_runs(&mut database)?;
    let folders = folders(&mut database, &runs)?;
    let run = RunRequest {
        folders: folders.into_iter().map(|folder| folder.value).collect(),
        retries: request.form().get("retries").is_some(),
    };
    (services.start_run)(run).map_err(PageError::bad_request)?;
    Ok(Response::redirect(
        &FormFields::default().and("started", "1").address(PATH),
    ))
}

/// Stops the run that was started from the page.
///
/// # Errors
/// Fails if the browser belongs to another user.
pub fn stop_run(request: &Request) -> Result<Response, PageError> {
    let services = request.owner_services()?;
    let address = if (services.stop_run)() {
        FormFields::default().and("stopped", "1").address(PATH)
    } else {
        PATH.to_owned()
    };
    Ok(Response::redirect(&address))
}
