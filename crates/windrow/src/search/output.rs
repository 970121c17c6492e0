//! Writes results to standard output in the selected format.

use std::io::{self, IsTerminal, StdoutLock, Write as _};

use windrow_document::doc;

use windrow_file_search::SearchResult;

use super::options::{ColorChoice, Options, Output};
use super::result::{OutputStyle, ShownResult as _, id_bytes};

/// Writes results.
pub struct ResultWriter<'o> {
    output: StdoutLock<'static>,
    format: &'o Output,
    style: OutputStyle,
}

impl ResultWriter<'_> {
    /// Creates a writer to standard output.
    pub fn new(options: &Options) -> ResultWriter<'_> {
        let output = io::stdout().lock();
        let is_colored = match options.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => output.is_terminal() && !is_set("NO_COLOR"),
        };
        let style = if is_colored {
            OutputStyle::Colored
        } else {
            OutputStyle::Plain
        };
        ResultWriter {
            output,
            format: &options.output,
            style,
        }
    }

    /// Writes a result with its rank.
    pub fn write(&mut self, result: &SearchResult, number: usize) -> io::Result<()> {
        match self.format {
            Output::Text => result.write(&mut self.output, number, self.style),
            Output::Json => writeln!(self.output, "{}", result.to_document()),
            Output::Names(end) => self.write_name(result, end),
            Output::Template(template) => {
                self.output.write_all(&template.format(result, number))?;
                writeln!(self.output)
            }
        }
    }

    /// Writes a path in the original bytes of the file system.
    fn write_name(&mut self, result: &SearchResult, end: &str) -> io::Result<()> {
        self.output.write_all(&id_bytes(result))?;
        write!(self.output, "{end}")
    }

    /// Writes a suggested query: among the results for programs, otherwise to standard error.
    pub fn write_suggestion(&mut self, query: &str) {
        if *self.format == Output::Json {
            // A write error means that the pipe was closed.
            let _ = writeln!(self.output, "{}", doc! { "suggestion": query });
        }
        eprintln!("windrow: did you mean: {query}");
    }
}

/// Returns `true` if an environment variable is set and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
