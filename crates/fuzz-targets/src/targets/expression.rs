//! The target `expression`: parsing and evaluation of expressions.

use windrow_document::DocumentBuf;
use windrow_mql::expression::{Context, Expression, Scope, Variables};

use crate::value_encoding::ValueDecoder;

/// The input is an expression, a document and a variable. The result must be valid in a document.
pub fn run(bytes: &[u8]) {
    let mut source = ValueDecoder::new(bytes);
    let (expression, document) = (source.value(), source.document());
    let mut variables = Variables::new();
    variables.set("e", Some(source.value()));
    let scope = Scope::with_variables(&variables);
    let Ok(expression) = Expression::parse(expression.as_ref(), &scope) else {
        return;
    };
    let context = Context::new(document.as_document())
        .with_variables(&variables)
        .with_now(1_700_000_000_000);
    let Ok(found) = expression.evaluate(&context) else {
        return;
    };
    if let Some(value) = found.into_value() {
        let mut holder = DocumentBuf::new();
        holder.push("found", value);
        if let Err(error) = DocumentBuf::from_bytes(holder.into_bytes()) {
            // The code that stores a result refuses one that is nested too deeply.
            assert!(error.to_string().contains("nest"), "{error}");
        }
    }
}
