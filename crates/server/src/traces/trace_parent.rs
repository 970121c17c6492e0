//! `traceparent`: the span of a client, which it sends in the comment of a command
//! (<https://www.w3.org/TR/trace-context/#traceparent-header>).

use windrow_document::ValueRef;

/// The span of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    pub span_id: u64,
    /// `true` if the client records its span.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Returns the span in a comment: the comment itself, or its field `traceparent`. `None` for
    /// other comments.
    pub fn from_comment(comment: ValueRef<'_>) -> Option<TraceParent> {
        match comment {
            ValueRef::String(text) => TraceParent::parse(text),
            ValueRef::Document(fields) => TraceParent::parse(fields.get("traceparent")?.as_str()?),
            _ => None,
        }
    }

    /// Parses `VERSION-TRACE-SPAN-FLAGS`. Later versions may have more parts.
    fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace_id = hexadecimal(parts.next()?, 32)?;
        let span_id = u64::try_from(hexadecimal(parts.next()?, 16)?).ok()?;
        let flags = hexadecimal(parts.next()?, 2)?;
        let is_complete = version != 0 || parts.next().is_none();
        let is_valid = version != 0xff && trace_id != 0 && span_id != 0 && is_complete;
        is_valid.then_some(TraceParent {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// Parses a number of `digits` lowercase hexadecimal digits.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn comments_can_have_a_span() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let check = |text: &str, sampled: Option<bool>| {
            let found = TraceParent::from_comment(ValueRef::String(text));
            assert_eq!(found.map(|it| it.is_sampled), sampled, "{text}");
            let within = doc! { "traceparent": text, "other": 1 };
            let within = TraceParent::from_comment(ValueRef::Document(within.as_document()));
            assert_eq!(within, found, "{text}");
        };
        check(&format!("00-{trace}-{span}-01"), Some(true));
        check(&format!("00-{trace}-{span}-00"), Some(false));
        check(&format!("01-{trace}-{span}-01-more"), Some(true));
        check(&format!("00-{trace}-{span}-01-more"), None);
        check(&format!("ff-{trace}-{span}-01"), None);
        check(&format!("00-{}-{span}-01", "0".repeat(32)), None);
        check(&format!("00-{}-{span}-01", trace.to_uppercase()), None);
        check("a comment", None);
        check("", None);
        assert_eq!(TraceParent::from_comment(ValueRef::Int32(1)), None);
    }
}
