//! `windrow completion`: shell scripts that complete commands and options.
//!
//! The scripts are generated from the help texts, see `help_page`, and not by a command-line
//! library. Such a library would also parse the arguments and format the help.

use std::fmt::Write as _;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::command_line::{Failure, Subcommand};
use crate::help_page::{Entry, HelpPage, read_pages};

pub const COMPLETION: Subcommand = Subcommand {
    name: "completion",
    summary: Some("print a script that completes commands in a shell"),
    run,
};

const HELP: &str = "Prints a script that completes commands and options in a shell.

Usage: windrow completion SHELL

Shells:
  bash    windrow completion bash > ~/.local/share/bash-completion/completions/windrow
  zsh     windrow completion zsh > a folder of $fpath/_windrow
  fish    windrow completion fish > ~/.config/fish/completions/windrow.fish

Options:
  -h, --help  show this help

Examples:
  source <(windrow completion bash)
";

/// Value names that denote files, and those that denote folders.
const FILES: [&str; 1] = ["FILE"];
const FOLDERS: [&str; 2] = ["DIR", "FOLDER"];

/// Generates the script for a shell.
type Writer = fn(&[HelpPage]) -> String;

const SHELLS: [(&str, Writer); 3] = [
    ("bash", bash_script),
    ("zsh", zsh_script),
    ("fish", fish_script),
];

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    match parse(arguments)? {
        None => print!("{HELP}"),
        Some(write) => print!("{}", write(&read_pages()?)),
    }
    Ok(ExitCode::SUCCESS)
}

fn parse(mut arguments: lexopt::Parser) -> Result<Option<Writer>, Failure> {
    let mut writer = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Value(name) if writer.is_none() => {
                let shell = SHELLS.into_iter().find(|(known, _)| name == *known);
                writer = Some(shell.map(|(_, write)| write).ok_or_else(|| {
                    Failure::Usage(format!("{name:?} is not a shell; write bash, zsh or fish"))
                })?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    writer
        .ok_or_else(|| Failure::missing_argument("SHELL", "completion"))
        .map(Some)
}

/// Returns all names of the options of a page.
fn all_flags(page: &HelpPage) -> Vec<&str> {
    page.entries("Options").flat_map(Entry::flags).collect()
}

/// Returns the names of all commands.
fn commands(pages: &[HelpPage]) -> Vec<&str> {
    let commands = pages.iter().map(|page| page.command.as_str());
    commands.filter(|command| !command.is_empty()).collect()
}

/// Returns the options with values, and their commands.
fn options_with_values(pages: &[HelpPage]) -> impl Iterator<Item = (&HelpPage, &Entry)> {
    let all = pages.iter().flat_map(|page| {
        let options = page.entries("Options");
        options.map(move |option| (page, option))
    });
    all.filter(|(_, option)| option.value().is_some())
}

fn bash_script(pages: &[HelpPage]) -> String {
    let mut values = String::new();
    for (page, option) in options_with_values(pages) {
        let flags: Vec<String> = option
            .flags()
            .map(|flag| format!("{}:{flag}", page.command))
            .collect();
        let value = option.value().unwrap_or_default();
        let complete = if FOLDERS.contains(&value) {
            "compgen -d -- \"$word\"".to_owned()
        } else if FILES.contains(&value) {
            "compgen -f -- \"$word\"".to_owned()
        } else {
            format!("compgen -W '{}' -- \"$word\"", option.choices().join(" "))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            values,
            "        {}) _windrow_words \"$({complete})\"; return ;;",
            flags.join("|")
        );
    }
    let mut words = String::new();
    for page in pages {
        let mut all = all_flags(page);
        if page.command.is_empty() {
            all.extend(commands(pages));
        }
        let _ = writeln!(
            words,
            "        '{}') words='{}' ;;",
            page.command,
            all.join(" ")
        );
    }
    format!(
        r#"# Completes windrow in bash. Made by `windrow completion bash`.
_windrow_words() {{
    local IFS=$'\n'
    COMPREPLY=($1)
}}
_windrow() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= words=
    if ((COMP_CWORD > 1)); then command=${{COMP_WORDS[1]}}; fi
    case "$command:$before" in
{values}    esac
    case "$command" in
{words}    esac
    if [[ -z $command || $word == -* ]]; then
        _windrow_words "$(compgen -W "$words" -- "$word")"
    else
        _windrow_words "$(compgen -f -- "$word")"
    fi
}}
complete -o filenames -F _windrow windrow
"#
    )
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn zsh_script(pages: &[HelpPage]) -> String {
    let mut descriptions = String::new();
    let mut cases = String::new();
    for page in pages.iter().filter(|page| !page.command.is_empty()) {
        let summary = page.summary().replace(':', " ");
        let _ = writeln!(
            descriptions,
            "        {}",
            quoted(&format!("{}:{summary}", page.command))
        );
        let _ = writeln!(
            cases,
            "        {})\n            _arguments \\",
            page.command
        );
        for option in page.entries("Options") {
            for flag in option.flags() {
                let _ = writeln!(
                    cases,
                    "                {} \\",
                    quoted(&zsh_option(option, flag))
                );
            }
        }
        let _ = writeln!(cases, "                '*:file:_files' ;;");
    }
    format!(
        r#"#compdef windrow
# Completes windrow in zsh. Made by `windrow completion zsh`.
_windrow() {{
    local -a commands
    commands=(
{descriptions}    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=${{words[2]}}
    shift words
    ((CURRENT--))
    case $command in
{cases}    esac
}}
_windrow "$@"
"#
    )
}

/// Returns the specification of an option for `_arguments`.
fn zsh_option(option: &Entry, flag: &str) -> String {
    let text: String = option
        .text
        .chars()
        .filter(|it| !matches!(it, '[' | ']' | ':'))
        .collect();
    let Some(value) = option.value() else {
        return format!("{flag}[{text}]");
    };
    let complete = if FOLDERS.contains(&value) {
        "_files -/".to_owned()
    } else if FILES.contains(&value) {
        "_files".to_owned()
    } else {
        format!("({})", option.choices().join(" "))
    };
    format!("{flag}[{text}]:{value}:{complete}")
}

fn fish_script(pages: &[HelpPage]) -> String {
    let mut script = "# Completes windrow in fish. Made by `windrow completion fish`.\n".to_owned();
    for page in pages {
        let condition = match page.command.as_str() {
            "" => "__fish_use_subcommand".to_owned(),
            command => {
                let summary = quoted(&page.summary());
                let _ = writeln!(
                    script,
                    "complete -c windrow -n __fish_use_subcommand -f -a {command} -d {summary}"
                );
                format!("__fish_seen_subcommand_from {command}")
            }
        };
        for option in page.entries("Options") {
            let mut line = format!("complete -c windrow -n {}", quoted(&condition));
            for flag in option.flags() {
                let _ = match flag.strip_prefix("--") {
                    Some(long) => write!(line, " -l {long}"),
                    None => write!(line, " -s {}", flag.trim_start_matches('-')),
                };
            }
            match option.value() {
                None => {}
                Some(value) if FOLDERS.contains(&value) => {
                    line.push_str(" -x -a '(__fish_complete_directories)'");
                }
                Some(value) if FILES.contains(&value) => line.push_str(" -r -F"),
                Some(_) => {
                    let _ = write!(line, " -x -a {}", quoted(&option.choices().join(" ")));
                }
            }
            let _ = writeln!(
                script,
                "{line} -d {}",
                quoted(&option.text.replace('\\', "\\\\"))
            );
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<HelpPage> {
        let own = "About.\n\nCommands:\n  find  finds\n\nOptions:\n  -h, --help  help\n";
        let find = "Finds it's files. More.\n\nOptions:\n  --data DIR    the folder\n  \
                    --sort ORDER  best, newest or oldest\n  -l, --list    the [names]: all\n";
        vec![HelpPage::parse("", own), HelpPage::parse("find", find)]
    }

    fn check(script: &str, expected: &[&str]) {
        for text in expected {
            assert!(script.contains(text), "{text}\n{script}");
        }
    }

    #[test]
    fn scripts_have_commands_options_and_values() {
        check(
            &bash_script(&pages()),
            &[
                "'') words='-h --help find'",
                "'find') words='--data --sort -l --list'",
                "find:--data) _windrow_words \"$(compgen -d -- \"$word\")\"",
                "find:--sort) _windrow_words \"$(compgen -W 'best newest oldest' -- \"$word\")\"",
            ],
        );
        check(
            &zsh_script(&pages()),
            &[
                "'find:Finds it'\\''s files'",
                "'--data[the folder]:DIR:_files -/'",
                "'--sort[best, newest or oldest]:ORDER:(best newest oldest)'",
                "'-l[the names all]'",
            ],
        );
        check(
            &fish_script(&pages()),
            &[
                "-n __fish_use_subcommand -f -a find -d 'Finds it'\\''s files'",
                "'__fish_seen_subcommand_from find' -s l -l list -d 'the [names]: all'",
                "-l sort -x -a 'best newest oldest' -d",
            ],
        );
    }

    #[test]
    fn shells_are_known() {
        let parsed = |arguments: &[&str]| parse(lexopt::Parser::from_args(arguments));
        assert!(parsed(&["zsh"]).is_ok_and(|writer| writer.is_some()));
        assert!(parsed(&["--help"]).is_ok_and(|writer| writer.is_none()));
        for wrong in [&["tcsh"][..], &[], &["bash", "zsh"], &["bash", "--fast"]] {
            assert!(matches!(parsed(wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }
}
