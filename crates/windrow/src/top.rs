//! `windrow top`: shows the activity of a running server, on a terminal or as JSON.
//!
//! ```text
//! sampler: a thread that queries the server ─ reports → state → view
//!                                             keys ────↗
//! ```

mod options;
mod sampler;
mod state;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::command_line::{Failure, Subcommand};
use crate::output_format::OutputFormat;
use crate::server_report::Report;
use crate::server_report::page::text;
use crate::server_target::ResolvedTarget;
use options::{HELP, Options, parse};
use sampler::Sampler;
use state::{Effect, State};

pub const TOP: Subcommand = Subcommand {
    name: "top",
    summary: Some("watch what a running server does"),
    run,
};

/// The maximum time to wait for a key before reports are handled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let is_interactive = !options.once;
    if is_interactive && (!io::stdin().is_terminal() || !io::stdout().is_terminal()) {
        let message = "top needs a terminal; --once prints one report";
        return Err(Failure::usage(message));
    }
    let target = options.target.resolve()?;
    if is_interactive {
        watch(target, &options)?;
    } else {
        print_once(&target, &options)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one report about the time between two samples.
fn print_once(target: &ResolvedTarget, options: &Options) -> Result<(), Failure> {
    let report = Report::measure(target, options.interval)?;
    let shown = match options.format {
        OutputFormat::Json => format!("{}\n", report.to_document()),
        OutputFormat::Text => text(&report),
    };
    // A write error means that the pipe was closed.
    let _ = io::stdout().write_all(shown.as_bytes());
    Ok(())
}

/// Runs the interface until the user leaves it.
fn watch(target: ResolvedTarget, options: &Options) -> Result<(), Failure> {
    let mut state = State::new(&target.to_string());
    // A wrong address or password is a failure of the command.
    let client = target.connect().map_err(Failure::runtime)?;
    let sampler = Sampler::start(target, client, options.interval)?;
    let mut terminal = ratatui::try_init().map_err(Failure::runtime)?;
    let ended = show(&mut terminal, &mut state, &sampler);
    ratatui::restore();
    ended.map_err(Failure::runtime)
}

fn show(terminal: &mut DefaultTerminal, state: &mut State, sampler: &Sampler) -> io::Result<()> {
    let mut is_changed = true;
    loop {
        while let Some(sampled) = sampler.next_report() {
            state.receive(sampled);
            is_changed = true;
        }
        if is_changed {
            terminal.draw(|frame| view::draw(frame, state))?;
            is_changed = false;
        }
        if !event::poll(POLL_INTERVAL)? {
            continue;
        }
        is_changed = true;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && state.press(key) == Effect::Leave
        {
            return Ok(());
        }
    }
}
