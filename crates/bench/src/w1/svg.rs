//! Horizontal bar charts as SVG. Each bar has a name and a value.

use std::fmt::Write as _;

const ROW: f64 = 24.0;
const NAMES: f64 = 330.0;
const BARS: f64 = 420.0;
const VALUES: f64 = 80.0;

pub struct Bars<'a> {
    pub title: &'a str,
    pub values: &'a [(String, f64)],
    /// The position of a vertical reference line.
    pub line: Option<f64>,
}

impl Bars<'_> {
    pub fn draw(&self) -> String {
        let values = self.values.iter().map(|(_, value)| *value);
        let greatest = values.chain(self.line).fold(f64::MIN_POSITIVE, f64::max);
        let across = |value: f64| NAMES + BARS * value / greatest;
        let (width, height) = (
            NAMES + BARS + VALUES,
            ROW * (self.values.len() as f64 + 1.5),
        );
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
             <text x=\"0\" y=\"16\" font-weight=\"bold\">{}</text>\n",
            escaped(self.title)
        );
        for (place, (name, value)) in self.values.iter().enumerate() {
            let top = ROW * (place as f64 + 1.2);
            let (base, end) = (top + ROW * 0.6, across(*value));
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{NAMES}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"#3b6ea5\"/>\
                 <text x=\"{:.1}\" y=\"{base:.1}\">{}</text>",
                NAMES - 8.0,
                escaped(name),
                end - NAMES,
                ROW * 0.8,
                end + 6.0,
                short(*value)
            );
        }
        if let Some(line) = self.line {
            let x = across(line);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{ROW}\" y2=\"{height}\" \
                 stroke=\"#b03030\" stroke-dasharray=\"4 3\"/>"
            );
        }
        out + "</svg>\n"
    }
}

fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_value_has_the_full_width() {
        let values = [("a & b".to_owned(), 1.0), ("c".to_owned(), 250.0)];
        let drawn = Bars {
            title: "<times>",
            values: &values,
            line: Some(125.0),
        }
        .draw();
        assert!(drawn.contains("width=\"420.0\""), "{drawn}");
        assert!(drawn.contains(">a &amp; b<") && drawn.contains("&lt;times&gt;"));
        assert!(drawn.contains(">1.00<") && drawn.contains(">250<"));
        assert!(drawn.contains("x1=\"540.0\""), "{drawn}");
        assert_eq!(drawn.matches("<rect").count(), 2);
    }
}
