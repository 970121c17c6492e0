//! The state of the interface, and its changes by keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::sampler::SampleResult;
use crate::server_report::{CollectionRate, Report};

/// The column by which collections are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortColumn {
    Total,
    Reads,
    Writes,
}

/// The action that a key requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Leave,
}

/// The state of the interface.
pub struct State {
    /// The server as named by the user.
    pub server: String,
    pub report: Option<Box<Report>>,
    /// The reason why there is no newer report.
    pub failure: Option<String>,
    pub is_paused: bool,
    pub sort: SortColumn,
    /// The number of operations above the first visible one.
    pub scroll: usize,
}

impl State {
    pub fn new(server: &str) -> State {
        State {
            server: server.to_owned(),
            report: None,
            failure: None,
            is_paused: false,
            sort: SortColumn::Total,
            scroll: 0,
        }
    }

    /// Handles a report, unless the interface is paused.
    pub fn receive(&mut self, sampled: SampleResult) {
        if self.is_paused {
            return;
        }
        match sampled {
            Ok(report) => {
                self.failure = None;
                self.report = Some(report);
                self.scroll = self.scroll.min(self.scroll_max());
            }
            Err(reason) => self.failure = Some(reason),
        }
    }

    fn scroll_max(&self) -> usize {
        let count = self.report.as_ref().map_or(0, |it| it.running.len());
        count.saturating_sub(1)
    }

    /// Returns the collections in the selected order.
    pub fn collections(&self) -> Vec<&CollectionRate> {
        let report = self.report.as_ref();
        let mut collections: Vec<_> = report.iter().flat_map(|it| &it.collections).collect();
        let key = |one: &CollectionRate| match self.sort {
            SortColumn::Total => one.total_ms,
            SortColumn::Reads => one.read_ms,
            SortColumn::Writes => one.write_ms,
        };
        collections.sort_by(|one, other| key(other).total_cmp(&key(one)));
        collections
    }

    pub fn press(&mut self, key: KeyEvent) -> Effect {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Effect::Leave;
            }
            KeyCode::Char('q') | KeyCode::Esc => return Effect::Leave,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => {
                self.sort = match self.sort {
                    SortColumn::Total => SortColumn::Reads,
                    SortColumn::Reads => SortColumn::Writes,
                    SortColumn::Writes => SortColumn::Total,
                };
            }
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = (self.scroll + 1).min(self.scroll_max()),
            _ => {}
        }
        Effect::None
    }
}
