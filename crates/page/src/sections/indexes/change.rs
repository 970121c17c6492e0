//! Creates and drops indexes.

use maud::{Markup, html};
use windrow_document::{DocumentBuf, ValueRef, doc};

use crate::collection_frame::document_field;
use crate::error::PageError;
use crate::form::FormFields;
use crate::literals::parse_document;
use crate::namespace::Namespace;
use crate::request::Request;
use crate::response::Response;
use crate::shell::form_token;
use crate::texts::indexes as texts;

use super::build::run_build;
use super::dropping::run_drop;
use super::show_build;

/// Shows the form for a new index.
pub fn create_form(request: &Request, namespace: &Namespace) -> Markup {
    let form = request.form();
    html! {
        details .below open[form.get("key").is_some()] {
            summary { (texts::CREATE) }
            form .panel .stack .wide-form method="post" action=(namespace.page_address("indexes")) {
                (form_token(request))
                (document_field("key", texts::CREATE_KEY, "{ name: 1, at: -1 }", form.text("key")))
                p .muted .small { (texts::CREATE_KEY_HINT) }
                label .row .check { input type="checkbox" name="unique" value="1" checked[form.get("unique").is_some()]; (texts::UNIQUE) }
                label .row .check { input type="checkbox" name="sparse" value="1" checked[form.get("sparse").is_some()]; (texts::SPARSE) }
                label for="name" { (texts::CREATE_NAME) }
                input #name name="name" value=(form.text("name")) autocomplete="off";
                label for="expire" { (texts::EXPIRE) }
                input #expire name="expire" value=(form.text("expire")) inputmode="numeric" autocomplete="off";
                (document_field("partial", texts::PARTIAL, "{ paid: false }", form.text("partial")))
                (document_field("options", texts::MORE, "{ collation: { locale: \"de\" } }", form.text("options")))
                div { button .primary type="submit" { (texts::CREATE_SUBMIT) } }
            }
        }
    }
}

/// Starts a build, which continues when the browser disconnects.
pub fn create(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let built = start_build(request, &namespace);
    show_build(request, &namespace, built)
}

fn start_build(request: &Request, namespace: &Namespace) -> Result<&'static str, PageError> {
    let definition = definition(request.form()).map_err(PageError::bad_request)?;
    let command = doc! {
        "createIndexes": (namespace.collection.as_str()), "indexes": [definition],
        "$db": (namespace.database.as_str()),
    };
    run_build(request, command)
}

/// Parses the index definition of a form. Fails with a message.
fn definition(form: &FormFields) -> Result<DocumentBuf, String> {
    let field = |name: &str, title: &str| {
        let parsed = parse_document(form.text(name));
        parsed.map_err(|error| texts::field_error(title, &error.to_string()))
    };
    let key = field("key", texts::CREATE_KEY)?;
    if key.as_document().is_empty() {
        return Err(texts::KEY_ERROR.to_owned());
    }
    let name = match form.text("name").trim() {
        "" => name_of_key(&key),
        name => name.to_owned(),
    };
    let mut definition = doc! { "key": key, "name": name };
    for option in ["unique", "sparse"] {
        if form.get(option).is_some() {
            definition.push(option, true);
        }
    }
    if let expire @ [_, ..] = form.text("expire").trim().as_bytes() {
        let seconds = std::str::from_utf8(expire)
            .ok()
            .and_then(|it| it.parse::<i32>().ok());
        definition.push("expireAfterSeconds", seconds.ok_or(texts::EXPIRE_ERROR)?);
    }
    let partial = field("partial", texts::PARTIAL)?;
    if !partial.as_document().is_empty() {
        definition.push("partialFilterExpression", partial);
    }
    for (name, value) in field("options", texts::MORE)?.iter() {
        definition.push(name, value.to_value());
    }
    Ok(definition)
}

/// Returns the default name of an index, as drivers derive it: `a_1_b_-1`.
fn name_of_key(key: &DocumentBuf) -> String {
    let parts = key.iter().map(|(name, value)| match value {
        ValueRef::String(kind) => format!("{name}_{kind}"),
        other => format!(
            "{name}_{}",
            other
                .as_whole()
                .map_or(other.to_string(), |it| it.to_string())
        ),
    });
    parts.collect::<Vec<_>>().join("_")
}

/// Drops an index.
pub fn drop_index(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let name = request.form().text("name");
    // `*` drops all indexes in the command `dropIndexes`.
    if name.is_empty() || name == "*" {
        return Err(PageError::bad_request(texts::NONE));
    }
    let command = doc! {
        "dropIndexes": (namespace.collection.as_str()), "index": name,
        "$db": (namespace.database.as_str()),
    };
    run_drop(request, &namespace, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_become_definitions() {
        let form = FormFields::default()
            .and("key", "{a: 1, b: -1, c: 'text'}")
            .and("unique", "1")
            .and("expire", "60")
            .and("partial", "{d: {$gt: 1}}")
            .and("options", "{hidden: true}");
        assert_eq!(
            definition(&form).unwrap(),
            doc! {
                "key": { "a": 1, "b": (-1), "c": "text" }, "name": "a_1_b_-1_c_text", "unique": true,
                "expireAfterSeconds": 60, "partialFilterExpression": { "d": { "$gt": 1 } }, "hidden": true,
            }
        );
        let wrong = [
            ("key", ""),
            ("key", "{a"),
            ("expire", "soon"),
            ("partial", "1"),
        ];
        for (name, value) in wrong {
            let form = FormFields::default()
                .and("key", "{a: 1}")
                .with(name, Some(value));
            assert!(definition(&form).is_err(), "{name} {value}");
        }
    }
}
