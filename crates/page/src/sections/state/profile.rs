//! The profilers of databases: level and threshold.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use windrow_document::{ValueRef, doc};

use crate::data_table::{Column, data_table};
use crate::database::Database;
use crate::error::PageError;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::state as texts;

use super::SLOW;

/// The profiler settings of a database.
pub struct Profile {
    database: String,
    level: i64,
    slow_ms: i64,
}

/// Returns the profiler settings of the databases that the user may see.
pub fn read(database: &mut Database) -> Result<Vec<Profile>, PageError> {
    let mut profiles = Vec::new();
    for name in database.database_names()? {
        // Skips databases for which the user lacks the privilege.
        let Ok(reply) = database.run(doc! { "profile": (-1), "$db": (name.as_str()) }) else {
            continue;
        };
        let whole = |field: &str| reply.get(field).and_then(ValueRef::as_whole).unwrap_or(0);
        profiles.push(Profile {
            database: name,
            level: whole("was"),
            slow_ms: whole("slowms"),
        });
    }
    Ok(profiles)
}

/// Changes the profiler settings of a database.
pub fn set(request: &Request) -> Result<Response, PageError> {
    let form = request.form();
    let number = |name: &str, message: &str| {
        let value = form.text(name).parse::<i32>();
        value.map_err(|_| PageError::bad_request(message))
    };
    let level = number("level", texts::PROFILE_LEVEL_ERROR)?;
    let slow_ms = number("slowms", texts::PROFILE_LIMIT_ERROR)?;
    if !(0..=2).contains(&level) {
        return Err(PageError::bad_request(texts::PROFILE_LEVEL_ERROR));
    }
    let command = doc! { "profile": level, "slowms": slow_ms, "$db": (form.text("database")) };
    request.database()?.run(command)?;
    Ok(Response::redirect(SLOW))
}

/// Shows the settings as a table with a form for each database.
pub fn table(request: &Request, profiles: &[Profile]) -> Markup {
    html! {
        @if !profiles.is_empty() {
            h2 { (texts::PROFILE) }
            p .muted { (texts::PROFILE_LEAD) }
            (data_table(
                texts::PROFILE,
                "",
                &[
                    Column::text(texts::PROFILE_DATABASE),
                    Column::text(texts::PROFILE_LEVEL),
                    Column::text(texts::DETAILS),
                ],
                &html! { @for (at, one) in profiles.iter().enumerate() { (row(request, at, one)) } },
            ))
        }
    }
}

fn row(request: &Request, at: usize, profile: &Profile) -> Markup {
    let Profile {
        database,
        level,
        slow_ms,
    } = profile;
    let level_name = usize::try_from(*level)
        .ok()
        .and_then(|level| texts::PROFILE_LEVELS.get(level));
    let encoded = utf8_percent_encode(database, NON_ALPHANUMERIC);
    html! {
        tr {
            th scope="row" { bdi { (database) } }
            td {
                @if request.can_write() {
                    form .row method="post" action="/state/slow/profile" {
                        (form_token(request))
                        input type="hidden" name="database" value=(database);
                        select name="level" aria-label=(texts::profile_of(database)) {
                            @for (value, name) in texts::PROFILE_LEVELS.iter().enumerate() {
                                option value=(value) selected[value as i64 == *level] { (name) }
                            }
                        }
                        label .small for=(format!("slow-{at}")) { (texts::PROFILE_LIMIT) }
                        input .short #(format!("slow-{at}")) type="number" name="slowms" min="-1" value=(slow_ms)
                            aria-label=(texts::profile_limit_of(database));
                        button type="submit" { (texts::PROFILE_SET) }
                    }
                } @else {
                    (level_name.copied().unwrap_or_default()) ", " (slow_ms) " ms"
                }
            }
            td {
                a href=(format!("/collections/{encoded}/system.profile?sort=%7B+ts%3A+-1+%7D")) {
                    (texts::PROFILE_SEE)
                }
            }
        }
    }
}
