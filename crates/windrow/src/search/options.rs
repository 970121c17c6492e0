//! The command line of `windrow search`.

use std::path::PathBuf;

use lexopt::prelude::*;

use windrow_file_query::is_saved_query_name;
use windrow_file_search::{CountedField, ResultPage, ResultText, SortOrder};

use super::template::Template;
use crate::command_line::Failure;
use crate::config;

/// The parsed command line.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    /// The query as typed. Saved searches are not expanded yet.
    pub query: String,
    pub data_folder: PathBuf,
    pub page: ResultPage,
    pub action: Action,
    pub output: Output,
    pub color: ColorChoice,
    /// Searches for documents that are similar to this file.
    pub similar: Option<PathBuf>,
    pub synonyms: Option<PathBuf>,
    /// The name under which the query is saved.
    pub save: Option<String>,
    /// The query is not appended to the history.
    pub no_history: bool,
}

/// The action of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    #[default]
    ShowResults,
    CountBy(CountedField),
    /// Opens the file of the result with this number, counted from 1.
    Open(u32),
    ShowPipeline,
    /// Searches while the user types.
    Interact,
    ListSaved,
    ListHistory,
}

/// The output format of results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// For terminals and humans.
    #[default]
    Text,
    Json,
    /// Only the paths, each followed by this string.
    Names(&'static str),
    Template(Template),
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// If the output is a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Collects the command line. Mutually exclusive options are checked at the end.
#[derive(Default)]
struct Reader {
    options: Options,
    data_folder: Option<PathBuf>,
    actions: Vec<(&'static str, Action)>,
    outputs: Vec<(&'static str, Output)>,
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut reader, mut words) = (Reader::default(), Vec::new());
    loop {
        if let Some(word) = take_negated_term(&mut arguments) {
            words.push(word);
            continue;
        }
        let Some(argument) = arguments.next()? else {
            break;
        };
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Short('l') => reader.read_flag("names-only"),
            Short('0') => reader.read_flag("null"),
            Short('i') => reader.read_flag("interactive"),
            Value(word) => {
                words.push(word.string()?);
                true
            }
            Long(name) => {
                let name = name.to_owned();
                if !reader.read_flag(&name) && !reader.read_value(&name, &mut arguments)? {
                    return Err(Long(&name).unexpected().into());
                }
                true
            }
            other => return Err(other.unexpected().into()),
        };
    }
    reader.options.query = words.join(" ");
    reader.finish(!words.is_empty()).map(Some)
}

impl Reader {
    /// Reads an option without a value. Returns `false` if the name is unknown.
    fn read_flag(&mut self, name: &str) -> bool {
        let action = |reader: &mut Reader, name, action| reader.actions.push((name, action));
        match name {
            "names-only" => self.outputs.push(("--names-only", Output::Names("\n"))),
            "null" => self.outputs.push(("--null", Output::Names("\0"))),
            "json" => self.outputs.push(("--json", Output::Json)),
            "show-pipeline" => action(self, "--show-pipeline", Action::ShowPipeline),
            "interactive" => action(self, "--interactive", Action::Interact),
            "saved" => action(self, "--saved", Action::ListSaved),
            "history" => action(self, "--history", Action::ListHistory),
            "no-history" => self.options.no_history = true,
            _ => return false,
        }
        true
    }

    /// Reads an option with a value. Returns `false` if the name is unknown.
    fn read_value(&mut self, name: &str, arguments: &mut lexopt::Parser) -> Result<bool, Failure> {
        let mut text = || -> Result<String, Failure> { Ok(arguments.value()?.string()?) };
        match name {
            "limit" => self.options.page.limit = parse_count("--limit", 1, &text()?)?,
            "skip" => self.options.page.skip = parse_count("--skip", 0, &text()?)?,
            "sort" => self.options.page.sort = parse_sort(&text()?)?,
            "count-by" => {
                let field = parse_counted_field(&text()?)?;
                self.actions.push(("--count-by", Action::CountBy(field)));
            }
            "open" => {
                let number = parse_count("--open", 1, &text()?)?;
                self.actions.push(("--open", Action::Open(number)));
            }
            "format" => {
                let template = Template::parse(&text()?).map_err(Failure::Usage)?;
                self.outputs.push(("--format", Output::Template(template)));
            }
            "color" => self.options.color = parse_color(&text()?)?,
            "save" => {
                let name = text()?;
                check_name(&name)?;
                self.options.save = Some(name);
            }
            "data" | "dbpath" => self.data_folder = Some(PathBuf::from(arguments.value()?)),
            "similar" => self.options.similar = Some(PathBuf::from(arguments.value()?)),
            "synonyms" => self.options.synonyms = Some(PathBuf::from(arguments.value()?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(mut self, has_words: bool) -> Result<Options, Failure> {
        // `--null` is a variant of `--names-only`.
        if self.outputs.iter().any(|(name, _)| *name == "--null") {
            self.outputs.retain(|(name, _)| *name != "--names-only");
        }
        exclude_each_other(&self.actions)?;
        exclude_each_other(&self.outputs)?;
        let action = self.actions.first().map(|(_, action)| *action);
        let output = self.outputs.first().map(|(_, output)| output.clone());
        (self.options.action, self.options.output) =
            (action.unwrap_or_default(), output.unwrap_or_default());
        self.options.page.text = match self.options.output {
            Output::Names(_) => ResultText::None,
            _ => ResultText::Whole,
        };
        let options = &self.options;
        let is_list = matches!(options.action, Action::ListSaved | Action::ListHistory);
        let needs_words = options.similar.is_none() && options.action != Action::Interact;
        match (has_words, is_list) {
            (true, true) => {
                let message = "--saved and --history list searches; leave out the query";
                return Err(Failure::usage(message));
            }
            (false, false) if needs_words || options.save.is_some() => {
                return Err(Failure::missing_argument("QUERY", "search"));
            }
            _ => {}
        }
        if options.action == Action::Interact
            && (options.similar.is_some() || options.save.is_some())
        {
            let message =
                "--interactive searches for what is typed; leave out --similar and --save";
            return Err(Failure::usage(message));
        }
        self.check_output_of_action()?;
        self.options.data_folder = config::data_folder(self.data_folder, "search")?;
        Ok(self.options)
    }

    /// Fails if an option has no effect on the action.
    fn check_output_of_action(&self) -> Result<(), Failure> {
        let Options {
            action,
            output,
            page,
            ..
        } = &self.options;
        let is_page = page.skip > 0 || page.sort != SortOrder::Relevance;
        let message = match action {
            Action::CountBy(_) if is_page || !matches!(output, Output::Text | Output::Json) => {
                "--count-by shows no documents; leave out --skip, --sort, --names-only and --format"
            }
            Action::Open(_) | Action::Interact if *output != Output::Text => {
                "--open and --interactive print no results; leave out --json, --names-only and --format"
            }
            _ => return Ok(()),
        };
        Err(Failure::usage(message))
    }
}

fn exclude_each_other<T: PartialEq>(choices: &[(&'static str, T)]) -> Result<(), Failure> {
    let Some((first, choice)) = choices.first() else {
        return Ok(());
    };
    match choices.iter().find(|(_, other)| other != choice) {
        None => Ok(()),
        Some((other, _)) if other == first => {
            Err(Failure::Usage(format!("{first} may be given only once")))
        }
        Some((other, _)) => Err(Failure::Usage(format!(
            "{first} and {other} exclude each other"
        ))),
    }
}

/// Consumes the next argument if it is `-word`: a negated search term and not an option.
fn take_negated_term(arguments: &mut lexopt::Parser) -> Option<String> {
    let mut raw = arguments.try_raw_args()?;
    let word = raw.peek()?.to_str()?;
    let is_negated = word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
    if !is_negated || matches!(word, "-h" | "-l" | "-0" | "-i") {
        return None;
    }
    let word = word.to_owned();
    raw.next();
    Some(word)
}

fn parse_count(option: &str, least: u32, text: &str) -> Result<u32, Failure> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| {
        Failure::Usage(format!(
            "{option} {text:?} is not a number of results; write {least} or more"
        ))
    })
}

fn parse_counted_field(text: &str) -> Result<CountedField, Failure> {
    CountedField::from_name(text).ok_or_else(|| {
        Failure::Usage(format!(
            "--count-by {text:?} is not a field; write one of {}",
            CountedField::names()
        ))
    })
}

fn parse_sort(text: &str) -> Result<SortOrder, Failure> {
    SortOrder::from_name(text).ok_or_else(|| {
        Failure::Usage(format!(
            "--sort {text:?} is not an order; write relevance, newest, oldest or largest"
        ))
    })
}

fn parse_color(text: &str) -> Result<ColorChoice, Failure> {
    Ok(match text {
        "auto" => ColorChoice::Auto,
        "always" => ColorChoice::Always,
        "never" => ColorChoice::Never,
        _ => {
            return Err(Failure::Usage(format!(
                "--color {text:?} is not a choice; write auto, always or never"
            )));
        }
    })
}

/// Fails if a saved search cannot have this name.
fn check_name(name: &str) -> Result<(), Failure> {
    if is_saved_query_name(name) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "--save {name:?} is not a name; write letters, digits, \"-\", \"_\" and \".\""
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

    fn for_query(query: &str) -> Options {
        Options {
            query: query.to_owned(),
            data_folder: "d".into(),
            ..Options::default()
        }
    }

    fn check(arguments: &[&str], expected: Result<Options, &str>) {
        check_parsed(parse, arguments, expected);
    }

    #[test]
    fn words_are_joined() {
        let cases: [(&[&str], &str); 4] = [
            (&["bread", "butter", "--data", "d"], "bread butter"),
            (&["bread", "-white", "--data=d"], "bread -white"),
            (&["-white bread", "--data", "d"], "-white bread"),
            (&["\"a b\"", "--data", "d"], "\"a b\""),
        ];
        for (arguments, expected) in cases {
            check(arguments, Ok(for_query(expected)));
        }
    }

    #[test]
    fn options_are_parsed() {
        let page = Options {
            page: ResultPage {
                limit: 3,
                skip: 6,
                sort: SortOrder::Newest,
                text: ResultText::Whole,
            },
            output: Output::Json,
            save: Some("mine".to_owned()),
            no_history: true,
            ..for_query("brot")
        };
        let arguments = [
            "brot",
            "--limit=3",
            "--skip=6",
            "--sort=newest",
            "--json",
            "--save=mine",
            "--no-history",
            "--data=d",
        ];
        check(&arguments, Ok(page));
        let names = |end| Options {
            page: ResultPage {
                text: ResultText::None,
                ..ResultPage::default()
            },
            output: Output::Names(end),
            ..for_query("brot")
        };
        check(&["-l", "brot", "--data", "d"], Ok(names("\n")));
        check(&["-l", "-0", "brot", "--data", "d"], Ok(names("\0")));
        let saved = Options {
            action: Action::ListSaved,
            ..for_query("")
        };
        check(&["--saved", "--data", "d"], Ok(saved));
        let open = Options {
            action: Action::Open(2),
            similar: Some("f".into()),
            color: ColorChoice::Never,
            ..for_query("")
        };
        let arguments = ["--similar", "f", "--open", "2", "--color=never", "--data=d"];
        check(&arguments, Ok(open));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn wrong_options_are_refused() {
        let cases: [(&[&str], &str); 20] = [
            (&["bread", "--data", "d", "--count-by", "size"], "ext, kind"),
            (&["bread", "--data=d", "--count-by=ext", "-l"], "--count-by"),
            (&["--data", "d"], "QUERY"),
            (&["bread"], "--data"),
            (&["bread", "--data", "d", "--limit", "0"], "--limit"),
            (&["bread", "--data", "d", "--skip", "-1"], "--skip"),
            (&["bread", "--data", "d", "--sort", "best"], "--sort"),
            (&["bread", "--data", "d", "--language", "de"], "--language"),
            (&["bread", "--data", "d", "--json", "-0"], "--json"),
            (&["bread", "--data", "d", "--json=no"], "--json"),
            (&["bread", "--data", "d", "--fast"], "--fast"),
            (&["bread", "--data", "d", "--open", "0"], "--open"),
            (&["bread", "--data", "d", "--open=1", "--json"], "--open"),
            (&["bread", "--data=d", "-i", "--open=1"], "exclude"),
            (&["bread", "--data", "d", "--open=2", "--open=1"], "once"),
            (&["bread", "--data", "d", "--saved"], "leave out"),
            (&["--data", "d", "--similar=f", "--save", "x"], "QUERY"),
            (&["bread", "--data", "d", "--save", "a b"], "a b"),
            (&["bread", "--data", "d", "--color", "red"], "--color"),
            (&["bread", "--data", "d", "--format", "{x}"], "{x}"),
        ];
        for (arguments, expected) in cases {
            check(arguments, Err(expected));
        }
    }
}
