//! The command line of `windrow search`.

use std::path::PathBuf;

use lexopt::prelude::*;

use super::facets::CountedField;
use crate::command_line::Failure;

pub const HELP: &str =
    "Searches the files that `windrow index` made searchable. Shows the best results first, each with
its path, score and the matching part of its text. If a server has the data folder open, the
command uses the server.

Usage: windrow search QUERY… --data DIR [OPTION…]

Query:
  word word           documents with all words, in any of their forms, in title, text, names of
                      files or addresses; if no document has all, those with most of them
  Word                this form of the word only
  word OR word        documents with one of the words; OR binds closer than the space
  -word, NOT word     only documents without it
  \"a phrase\"          the words side by side
  \"two words\"p5       the words near each other, in any order, at most 5 places apart [default: 10]
  wor*, w?rd          any letters, any one letter
  ~word               also words that are spelled like it
  ( … )               a part of the query

  title: author: from: to: list: subject: keyword: path:    words in a part, as in 'from:ada title:\"a b\"'
  filename:*.pdf  ext:pdf,txt  kind:mail  lang:de     properties; a comma separates alternatives
  dir:/home/ada/docs  dir:src                         files in a folder or below it
  date:2024  date:2023-05..2024  date:P7D  date<2020  a year, month or day, two of them, the last 7
                                                      days; the document's own date, or the file's
  size>1M  size:10k..2M                               the size of the file

Options:
  --data DIR          the data folder
  --limit N           the maximal number of results [default: 10]
  --skip N            leave out the first results [default: 0]
  --sort ORDER        relevance, newest, oldest or largest [default: relevance]
  -l, --names-only    print only the paths, a line each
  -0, --null          print only the paths, with a zero byte behind each, for `xargs -0`
  --count-by FIELD    count the documents by ext, kind, lang, dir or year (of the last change), in place
                      of showing them; --limit is the number of values
  --json              print a JSON object per line
  --show-pipeline     print the aggregation on files.documents that does the same, and do not search
  -h, --help          show this help

Exit codes: 0 there are results, 1 there are no results, 2 the search failed.

Examples:
  windrow search configuration file --data ./data
  windrow search '\"free software\" -windows ext:md' --data ./data --limit 3
  windrow search 'from:ada date:2024' --data ./data --json
";

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub query: String,
    pub data_folder: PathBuf,
    pub limit: u32,
    pub skip: u32,
    pub sort: SortOrder,
    pub names_only: bool,
    /// Paths end with a zero byte instead of a line break.
    pub null: bool,
    pub count_by: Option<CountedField>,
    pub json: bool,
    pub show_pipeline: bool,
}

/// The order of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// The greatest score first.
    Relevance,
    /// The files that were changed last first.
    Newest,
    Oldest,
    Largest,
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut words, mut data_folder) = (Vec::new(), None);
    let mut options = Options {
        query: String::new(),
        data_folder: PathBuf::new(),
        limit: 10,
        skip: 0,
        sort: SortOrder::Relevance,
        names_only: false,
        null: false,
        count_by: None,
        json: false,
        show_pipeline: false,
    };
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
            Long("data" | "dbpath") => data_folder = Some(PathBuf::from(arguments.value()?)),
            Long("limit") => {
                options.limit = parse_count("--limit", 1, &arguments.value()?.string()?)?
            }
            Long("skip") => options.skip = parse_count("--skip", 0, &arguments.value()?.string()?)?,
            Long("sort") => options.sort = parse_sort(&arguments.value()?.string()?)?,
            Short('l') | Long("names-only") => options.names_only = true,
            Short('0') | Long("null") => (options.names_only, options.null) = (true, true),
            Long("count-by") => {
                options.count_by = Some(parse_counted_field(&arguments.value()?.string()?)?);
            }
            Long("json") => options.json = true,
            Long("show-pipeline") => options.show_pipeline = true,
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if words.is_empty() {
        return Err(Failure::missing_argument("QUERY", "search"));
    }
    if options.json && options.names_only {
        let message = "--json and --names-only exclude each other".to_owned();
        return Err(Failure::Usage(message));
    }
    let is_page = options.skip > 0 || options.names_only || options.sort != SortOrder::Relevance;
    if options.count_by.is_some() && is_page {
        let message = "--count-by shows no documents; leave out --skip, --sort and --names-only";
        return Err(Failure::Usage(message.to_owned()));
    }
    options.query = words.join(" ");
    options.data_folder =
        data_folder.ok_or_else(|| Failure::missing_argument("--data DIR", "search"))?;
    Ok(Some(options))
}

/// Takes the next argument if it is `-word`: not an option, but a negated search term.
fn take_negated_term(arguments: &mut lexopt::Parser) -> Option<String> {
    let mut raw = arguments.try_raw_args()?;
    let word = raw.peek()?.to_str()?;
    let is_negated = word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
    if !is_negated || matches!(word, "-h" | "-l" | "-0") {
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
    Ok(match text {
        "relevance" => SortOrder::Relevance,
        "newest" => SortOrder::Newest,
        "oldest" => SortOrder::Oldest,
        "largest" => SortOrder::Largest,
        _ => {
            return Err(Failure::Usage(format!(
                "--sort {text:?} is not an order; write relevance, newest, oldest or largest"
            )));
        }
    })
}

#[cfg(test)]
impl Options {
    /// The options of a search with all defaults.
    pub fn for_test(query: &str) -> Options {
        Options {
            query: query.to_owned(),
            data_folder: "d".into(),
            limit: 10,
            skip: 0,
            sort: SortOrder::Relevance,
            names_only: false,
            null: false,
            count_by: None,
            json: false,
            show_pipeline: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::check_parsed;

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
            check(arguments, Ok(Options::for_test(expected)));
        }
    }

    #[test]
    fn options_are_parsed() {
        let page = Options {
            limit: 3,
            skip: 6,
            sort: SortOrder::Newest,
            json: true,
            ..Options::for_test("brot")
        };
        let arguments = [
            "brot",
            "--limit=3",
            "--skip=6",
            "--sort=newest",
            "--json",
            "--data=d",
        ];
        check(&arguments, Ok(page));
        let names = Options {
            names_only: true,
            ..Options::for_test("brot")
        };
        check(&["-l", "brot", "--data", "d"], Ok(names));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }

    #[test]
    fn wrong_options_are_refused() {
        let cases: [(&[&str], &str); 10] = [
            (&["bread", "--data", "d", "--count-by", "size"], "ext, kind"),
            (&["bread", "--data=d", "--count-by=ext", "-l"], "--count-by"),
            (&["--data", "d"], "QUERY"),
            (&["bread"], "--data"),
            (&["bread", "--data", "d", "--limit", "0"], "--limit"),
            (&["bread", "--data", "d", "--skip", "-1"], "--skip"),
            (&["bread", "--data", "d", "--sort", "best"], "--sort"),
            (&["bread", "--data", "d", "--language", "de"], "--language"),
            (&["bread", "--data", "d", "--json", "-0"], "--json"),
            (&["bread", "--data", "d", "--fast"], "--fast"),
        ];
        for (arguments, expected) in cases {
            check(arguments, Err(expected));
        }
    }
}
