//! `windrow search --interactive`: searches while the user types, with a preview of the selected
//! result.
//!
//! ```text
//! keys → state → view
//!         ↓  ↑
//! worker: a search thread; a newer query interrupts the search for an older one
//! ```

mod state;
mod view;
mod worker;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind,
};
use ratatui::crossterm::execute;

use windrow_file_search::{QueryReader, append_history};

use super::opener::open_result;
use super::options::Options;
use super::searcher::Searcher;
use crate::command_line::Failure;
use state::{Effect, State};
use worker::Worker;

/// The maximum time to wait for a key before replies of the worker are handled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the interface until the user leaves it.
pub fn interact(reader: QueryReader, searcher: Searcher, options: &Options) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage("--interactive needs a terminal"));
    }
    let worker = Worker::start(reader, searcher, options.page)?;
    let mut state = State::new(&options.query);
    let mut terminal = ratatui::try_init().map_err(Failure::runtime)?;
    // Otherwise a line break in pasted text would be handled as Enter.
    let ended = execute!(io::stdout(), EnableBracketedPaste)
        .and_then(|()| run(&mut terminal, &mut state, &worker));
    let restored = execute!(io::stdout(), DisableBracketedPaste);
    ratatui::restore();
    ended.and(restored).map_err(Failure::runtime)?;
    if !options.no_history && state.has_results() {
        append_history(&options.data_folder, state.input.text());
    }
    Ok(())
}

fn run(terminal: &mut DefaultTerminal, state: &mut State, worker: &Worker) -> io::Result<()> {
    worker.search(state.input.text());
    let mut is_changed = true;
    loop {
        while let Some(reply) = worker.next_reply() {
            let effect = state.receive(reply);
            apply(&effect, state, worker);
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
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let effect = state.press(key);
                if effect == Effect::Leave {
                    return Ok(());
                }
                apply(&effect, state, worker);
            }
            Event::Paste(text) => {
                let effect = state.paste(&text);
                apply(&effect, state, worker);
            }
            _ => {}
        }
    }
}

fn apply(effect: &Effect, state: &mut State, worker: &Worker) {
    match effect {
        Effect::None | Effect::Leave => {}
        Effect::Search => worker.search(state.input.text()),
        Effect::Preview => {
            if let Some(result) = state.selected_result() {
                worker.preview(&result.id);
            }
        }
        Effect::Facets => worker.facets(state.input.text()),
        Effect::Open => {
            let Some(result) = state.selected_result() else {
                return;
            };
            let said = match open_result(result) {
                Ok(said) => said,
                Err(failure) => failure.to_string(),
            };
            state.set_message(&said);
        }
    }
}
