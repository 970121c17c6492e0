//! Creates and drops search indexes.

use maud::{Markup, html};
use windrow_document::{DocumentBuf, Value, doc};

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

/// Shows the form for a new search index. Its default definition indexes all fields.
pub fn create_form(request: &Request, namespace: &Namespace) -> Markup {
    let form = request.form();
    let is_again = form.get("search-definition").is_some();
    let name = form
        .get("search-name")
        .unwrap_or(texts::SEARCH_NAME_DEFAULT);
    let definition = form.get("search-definition");
    let definition = definition.unwrap_or(texts::SEARCH_DEFINITION_DEFAULT);
    html! {
        details .below open[is_again] {
            summary { (texts::CREATE_SEARCH) }
            form .panel .stack .wide-form method="post" action=(namespace.page_address("search-indexes")) {
                (form_token(request))
                p .muted .small { (texts::CREATE_SEARCH_LEAD) }
                label for="search-name" { (texts::SEARCH_NAME) }
                input #search-name name="search-name" value=(name) required autocomplete="off";
                label for="search-definition" { (texts::SEARCH_DEFINITION) }
                textarea #search-definition name="search-definition" rows="8" spellcheck="false"
                    aria-describedby="search-definition-hint" { "\n" (definition) }
                p #search-definition-hint .muted .small { (texts::SEARCH_DEFINITION_HINT) }
                div { button .primary type="submit" { (texts::CREATE_SUBMIT) } }
            }
        }
    }
}

/// Starts a build, which continues when the browser disconnects.
pub fn create(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let built = command(request.form(), &namespace)
        .map_err(PageError::bad_request)
        .and_then(|command| run_build(request, command));
    show_build(request, &namespace, built)
}

/// Parses the command of a form. Fails with a message.
fn command(form: &FormFields, namespace: &Namespace) -> Result<DocumentBuf, String> {
    let definition = parse_document(form.text("search-definition"));
    let definition = definition
        .map_err(|error| texts::field_error(texts::SEARCH_DEFINITION, &error.to_string()))?;
    let name = form.text("search-name").trim();
    let index = doc! { "name": name, "definition": definition };
    Ok(doc! {
        "createSearchIndexes": (namespace.collection.as_str()),
        "indexes": (vec![Value::from(index)]), "$db": (namespace.database.as_str()),
    })
}

/// Drops a search index.
pub fn drop_index(request: &Request) -> Result<Response, PageError> {
    let namespace = Namespace::from_request(request);
    let command = doc! {
        "dropSearchIndex": (namespace.collection.as_str()), "name": (request.form().text("name")),
        "$db": (namespace.database.as_str()),
    };
    run_drop(request, &namespace, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_become_commands() {
        let namespace = Namespace {
            database: "shop".to_owned(),
            collection: "orders".to_owned(),
        };
        let form = |definition: &str| {
            FormFields::default()
                .and("search-name", " words ")
                .and("search-definition", definition)
        };
        let expected = doc! {
            "createSearchIndexes": "orders",
            "indexes": [{ "name": "words", "definition": { "mappings": { "dynamic": true } } }],
            "$db": "shop",
        };
        let given = command(&form(texts::SEARCH_DEFINITION_DEFAULT), &namespace);
        assert_eq!(given.unwrap(), expected);
        for wrong in ["{", "[]", "{ mappings: true"] {
            let error = command(&form(wrong), &namespace).unwrap_err();
            assert!(error.starts_with(texts::SEARCH_DEFINITION), "{error}");
        }
    }
}
