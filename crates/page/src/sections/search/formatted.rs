//! Sanitizes rendered Markdown and HTML: no scripts, styles, forms or external resources.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{Options, Parser, html::push_html};

/// The sanitizer. It keeps only text elements and their harmless attributes.
static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::default();
    // Images would be loaded from other sites or from this page.
    cleaner.rm_tags(["img", "area", "map"]);
    cleaner.add_clean_content_tags([
        "title", "head", "svg", "math", "iframe", "object", "noscript",
    ]);
    cleaner.url_relative(UrlRelative::Deny);
    cleaner.url_schemes(HashSet::from(["http", "https", "mailto"]));
    cleaner.link_rel(Some("noopener noreferrer nofollow"));
    cleaner
});

/// Renders Markdown as sanitized HTML.
pub fn format_markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut formatted = String::new();
    push_html(&mut formatted, Parser::new_ext(text, options));
    format_html(&formatted)
}

/// Sanitizes HTML.
pub fn format_html(text: &str) -> String {
    CLEANER.clean(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        let hostile = "<title>T</title><script>alert(1)</script><p onclick=x() style=\"color:red\" id=content \
            class=top>A <b>b</b></p><img src=x onerror=alert(1)><iframe src=//evil.example></iframe>\
            <form action=/logout><input name=token></form><a href=\"javascript:alert(1)\">l</a>\
            <a href=/logout>own</a><svg><script>alert(1)</script></svg><style>p{}</style>\
            <meta http-equiv=refresh content=0><base href=//evil.example>";
        let formatted = format_html(hostile);
        for wrong in [
            "script",
            "onclick",
            "style",
            "id=",
            "class=",
            "<img",
            "iframe",
            "form",
            "javascript",
            "href=\"/",
            "svg",
            "meta",
            "base",
            "input",
        ] {
            assert!(!formatted.contains(wrong), "{wrong}: {formatted}");
        }
        assert!(formatted.contains("<p>A <b>b</b></p>"), "{formatted}");
    }

    #[test]
    fn markdown_is_formatted() {
        let formatted = format_markdown(
            "# A\n\n* [l](https://a.example) `c`\n\n<script>x</script>\n\n|a|\n|-|\n|b|",
        );
        assert!(
            formatted.contains("<h1>A</h1>") && formatted.contains("<code>c</code>"),
            "{formatted}"
        );
        assert!(
            formatted.contains("rel=\"noopener noreferrer nofollow\""),
            "{formatted}"
        );
        assert!(
            formatted.contains("<table>") && !formatted.contains("script"),
            "{formatted}"
        );
    }
}
