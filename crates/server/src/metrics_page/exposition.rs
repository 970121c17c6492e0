//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

use crate::latency::Latency;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A page of metrics. Samples belong to the family before them.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    family: &'static str,
}

impl Page {
    /// Begins a family of samples with one name.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.family = name;
        let kind = kind.name();
        // Writing to a string does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a family with one sample.
    pub fn value(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// Adds a sample with labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    /// Adds the samples of a histogram, in seconds.
    pub fn histogram(&mut self, labels: &[(&str, &str)], latency: &Latency) {
        for (micros, count) in latency.cumulative() {
            let bound = (micros as f64 / 1e6).to_string();
            self.line("_bucket", &[labels, &[("le", &bound)]].concat(), count);
        }
        self.line(
            "_bucket",
            &[labels, &[("le", "+Inf")]].concat(),
            latency.count(),
        );
        self.line("_sum", labels, latency.seconds());
        self.line("_count", labels, latency.count());
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.family);
        self.text.push_str(suffix);
        for (number, (name, label)) in labels.iter().enumerate() {
            self.text.push(if number == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            push_escaped(&mut self.text, label);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// Returns the page.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Appends the value of a label. Backslashes, quotes and line ends are escaped.
fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_are_lines_with_labels() {
        let mut page = Page::default();
        page.value("a_total", Kind::Counter, "All.", 3);
        page.family("b_seconds", Kind::Gauge, "Some.");
        page.sample(&[("name", "a\"b\\c\nd"), ("kind", "é")], 0.5);
        let expected = "# HELP a_total All.\n# TYPE a_total counter\na_total 3\n\
            # HELP b_seconds Some.\n# TYPE b_seconds gauge\n\
            b_seconds{name=\"a\\\"b\\\\c\\nd\",kind=\"é\"} 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn histograms_are_cumulative() {
        let mut latency = Latency::default();
        for micros in [10, 100, 1_000_000, 100_000_000] {
            latency.add(Duration::from_micros(micros));
        }
        let mut page = Page::default();
        page.family("d", Kind::Histogram, "Durations.");
        page.histogram(&[("class", "reads")], &latency);
        let text = page.into_text();
        for line in [
            "d_bucket{class=\"reads\",le=\"0.000064\"} 1",
            "d_bucket{class=\"reads\",le=\"0.000128\"} 2",
            "d_bucket{class=\"reads\",le=\"0.524288\"} 2",
            "d_bucket{class=\"reads\",le=\"1.048576\"} 3",
            "d_bucket{class=\"reads\",le=\"67.108864\"} 3",
            "d_bucket{class=\"reads\",le=\"+Inf\"} 4",
            "d_sum{class=\"reads\"} 101.00011",
            "d_count{class=\"reads\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
