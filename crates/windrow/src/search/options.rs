//! The command line of `windrow search`.

use std::path::PathBuf;

use lexopt::prelude::*;
use windrow_text::{Language, TextVersion};

use crate::command_line::Failure;

pub const HELP: &str =
    "Searches the files that `windrow index` made searchable. Shows the best results first, each with
its path, score and the matching part of its text. If a server has the data folder open, the
command uses the server.

Usage: windrow search WORDS… --data DIR [OPTION…]

  word word     documents with any of the words; more matching words score higher
  \"a phrase\"    only documents with this exact phrase, as in '\"bread and butter\"'
  -word         only documents without this word

Options:
  --data DIR          the data folder
  --limit N           the maximal number of results [default: 10]
  --language NAME     the language of the words: its name or two-letter code, or none
                      [default: english]
  --json              print a JSON object per line
  -h, --help          show this help

Exit codes: 0 there are results, 1 there are no results, 2 the search failed.

Examples:
  windrow search 'configuration file' --data ./data
  windrow search '\"free software\" -windows' --data ./data --limit 3
  windrow search brot --language de --data ./data --json
";

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub words: String,
    pub data_folder: PathBuf,
    pub limit: u32,
    pub language: Language,
    pub json: bool,
}

/// Returns `None` if help was requested.
pub fn parse(mut arguments: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let (mut words, mut data_folder) = (Vec::new(), None);
    let (mut limit, mut language, mut json) = (10, Language::ENGLISH, false);
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
            Long("limit") => limit = parse_limit(&arguments.value()?.string()?)?,
            Long("language") => language = parse_language(&arguments.value()?.string()?)?,
            Long("json") => json = true,
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if words.is_empty() {
        return Err(Failure::missing_argument("WORDS", "search"));
    }
    Ok(Some(Options {
        words: words.join(" "),
        data_folder: data_folder
            .ok_or_else(|| Failure::missing_argument("--data DIR", "search"))?,
        limit,
        language,
        json,
    }))
}

/// Takes the next argument if it is `-word`: not an option, but a negated search term.
fn take_negated_term(arguments: &mut lexopt::Parser) -> Option<String> {
    let mut raw = arguments.try_raw_args()?;
    let word = raw.peek()?.to_str()?;
    let is_negated = word.starts_with('-') && !word.starts_with("--") && word.len() > 1;
    if !is_negated || word == "-h" {
        return None;
    }
    let word = word.to_owned();
    raw.next();
    Some(word)
}

fn parse_limit(text: &str) -> Result<u32, Failure> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Failure::Usage(format!(
            "--limit {text:?} is not a number of results; write 1 or more"
        ))
    })
}

fn parse_language(text: &str) -> Result<Language, Failure> {
    Language::parse(text, TextVersion::V3).map_err(|_| {
        Failure::Usage(format!(
            "--language {text:?} is not supported by text indexes; write a name (english), a code (en) \
             or none"
        ))
    })
}

#[cfg(test)]
impl Options {
    /// The options of a search for `words` with all defaults.
    pub fn for_test(words: &str) -> Options {
        Options {
            words: words.to_owned(),
            data_folder: "d".into(),
            limit: 10,
            language: Language::ENGLISH,
            json: false,
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
    fn arguments_are_parsed() {
        check(
            &["bread", "butter", "--data", "d"],
            Ok(Options::for_test("bread butter")),
        );
        check(
            &["bread", "-white", "--data=d"],
            Ok(Options::for_test("bread -white")),
        );
        check(
            &["-white bread", "--data", "d"],
            Ok(Options::for_test("-white bread")),
        );
        check(
            &["\"a b\"", "--data", "d"],
            Ok(Options::for_test("\"a b\"")),
        );
        let german = Options {
            limit: 3,
            language: parse_language("de").unwrap(),
            json: true,
            ..Options::for_test("brot")
        };
        let arguments = [
            "brot",
            "--language",
            "de",
            "--limit",
            "3",
            "--json",
            "--data",
            "d",
        ];
        check(&arguments, Ok(german));
        check(&["--data", "d"], Err("WORDS"));
        check(&["bread"], Err("--data"));
        check(&["bread", "--data", "d", "--limit", "0"], Err("--limit"));
        check(
            &["bread", "--data", "d", "--language", "xx"],
            Err("--language"),
        );
        check(&["bread", "--data", "d", "--fast"], Err("--fast"));
        assert_eq!(parse(lexopt::Parser::from_args(["-h"])), Ok(None));
    }
}
