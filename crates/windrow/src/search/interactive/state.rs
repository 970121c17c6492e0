//! The state of the interface, and its changes by keys and replies.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use windrow_file_search::SearchResult;

use super::worker::{FacetCounts, Reply};
use crate::display_text::harmless_line;

/// The state of the interface.
pub struct State {
    pub input: Input,
    pub results: Vec<SearchResult>,
    pub selected: usize,
    pub panel: Panel,
    /// The lines of the selected document.
    pub preview: Vec<String>,
    /// The number of lines above the visible part of the panel.
    pub scroll: usize,
    pub facets: Vec<FacetCounts>,
    /// A note about the results, or an error message.
    pub message: String,
}

/// The content of the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    Preview,
    Facets,
}

/// The action that must follow a key or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    Search,
    Preview,
    Facets,
    Open,
    Leave,
}

/// An editable line.
#[derive(Debug, Default)]
pub struct Input {
    text: String,
    /// The offset of the cursor in bytes.
    cursor: usize,
}

/// The number of lines of PageUp and PageDown.
const PAGE_LINES: usize = 10;
/// The maximum length of a query in bytes.
const INPUT_BYTES_MAX: usize = 10_000;

impl State {
    /// Creates the state with the query of the command line.
    pub fn new(query: &str) -> State {
        let mut input = Input::default();
        input.insert(query);
        State {
            input,
            results: Vec::new(),
            selected: 0,
            panel: Panel::Preview,
            preview: Vec::new(),
            scroll: 0,
            facets: Vec::new(),
            message: String::new(),
        }
    }

    /// Returns the selected result.
    pub fn selected_result(&self) -> Option<&SearchResult> {
        self.results.get(self.selected)
    }

    /// Returns `true` if there are results.
    pub fn has_results(&self) -> bool {
        !self.results.is_empty() && !self.input.text.trim().is_empty()
    }

    /// Sets the message.
    pub fn set_message(&mut self, message: &str) {
        self.message = harmless_line(message);
    }

    /// Handles a reply of the worker.
    pub fn receive(&mut self, reply: Reply) -> Effect {
        match reply {
            Reply::Results { results, message } => {
                self.results = results;
                (self.selected, self.scroll) = (0, 0);
                self.set_message(&message);
                self.preview.clear();
                self.facets.clear();
                self.panel_effect()
            }
            Reply::Preview { id, text } => {
                if self.selected_result().is_some_and(|result| result.id == id) {
                    self.preview = text.lines().map(harmless_line).collect();
                    self.scroll = self.first_hit_line();
                }
                Effect::None
            }
            Reply::Facets(facets) => {
                self.facets = facets;
                Effect::None
            }
            Reply::Failure(message) => {
                self.set_message(&message);
                Effect::None
            }
        }
    }

    /// Returns a line slightly above that of the first match, if it is known.
    fn first_hit_line(&self) -> usize {
        const LINES_ABOVE: usize = 3;
        let line = self.selected_result().and_then(SearchResult::line);
        line.unwrap_or(1).saturating_sub(LINES_ABOVE + 1)
    }

    /// Inserts pasted text.
    pub fn paste(&mut self, text: &str) -> Effect {
        self.input.insert(text);
        Effect::Search
    }

    /// Handles a key.
    pub fn press(&mut self, key: KeyEvent) -> Effect {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Effect::Leave,
                KeyCode::Char('u') => self.edit(Input::clear),
                KeyCode::Char('p') => self.select(self.selected.saturating_sub(1)),
                KeyCode::Char('n') => self.select(self.selected + 1),
                _ => Effect::None,
            };
        }
        match key.code {
            KeyCode::Esc => Effect::Leave,
            KeyCode::Enter => Effect::Open,
            KeyCode::Tab => {
                self.panel = match self.panel {
                    Panel::Preview => Panel::Facets,
                    Panel::Facets => Panel::Preview,
                };
                self.scroll = 0;
                self.panel_effect()
            }
            KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::Down => self.select(self.selected + 1),
            KeyCode::PageUp => self.scroll_to(self.scroll.saturating_sub(PAGE_LINES)),
            KeyCode::PageDown => self.scroll_to(self.scroll + PAGE_LINES),
            KeyCode::Left => self.move_cursor(Input::left),
            KeyCode::Right => self.move_cursor(Input::right),
            KeyCode::Home => self.move_cursor(|input| input.cursor = 0),
            KeyCode::End => self.move_cursor(|input| input.cursor = input.text.len()),
            KeyCode::Backspace => self.edit(Input::delete_before),
            KeyCode::Delete => self.edit(Input::delete_behind),
            KeyCode::Char(character) => {
                self.edit(|input| input.insert(character.encode_utf8(&mut [0; 4])))
            }
            _ => Effect::None,
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut Input)) -> Effect {
        change(&mut self.input);
        Effect::Search
    }

    fn move_cursor(&mut self, change: impl FnOnce(&mut Input)) -> Effect {
        change(&mut self.input);
        Effect::None
    }

    fn select(&mut self, number: usize) -> Effect {
        let number = number.min(self.results.len().saturating_sub(1));
        if number == self.selected {
            return Effect::None;
        }
        self.selected = number;
        self.preview.clear();
        self.scroll = 0;
        match self.panel {
            Panel::Preview => Effect::Preview,
            Panel::Facets => Effect::None,
        }
    }

    fn scroll_to(&mut self, line: usize) -> Effect {
        self.scroll = line.min(self.preview.len().saturating_sub(1));
        Effect::None
    }

    /// Returns the action that fills the panel.
    fn panel_effect(&self) -> Effect {
        match self.panel {
            Panel::Preview if self.preview.is_empty() => Effect::Preview,
            Panel::Facets if self.facets.is_empty() => Effect::Facets,
            _ => Effect::None,
        }
    }
}

impl Input {
    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before the cursor.
    pub fn before_cursor(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn insert(&mut self, text: &str) {
        for character in text.chars().filter(|it| !it.is_control() || *it == '\n') {
            if self.text.len() >= INPUT_BYTES_MAX {
                return;
            }
            let character = if character == '\n' { ' ' } else { character };
            self.text.insert(self.cursor, character);
            self.cursor += character.len_utf8();
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
    }

    fn left(&mut self) {
        if let Some(character) = self.before_cursor().chars().next_back() {
            self.cursor -= character.len_utf8();
        }
    }

    fn right(&mut self) {
        let behind = self.text.get(self.cursor..).unwrap_or_default();
        self.cursor += behind.chars().next().map_or(0, char::len_utf8);
    }

    fn delete_before(&mut self) {
        let end = self.cursor;
        self.left();
        self.text.replace_range(self.cursor..end, "");
    }

    fn delete_behind(&mut self) {
        let start = self.cursor;
        self.right();
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    fn result(id: &str) -> SearchResult {
        SearchResult::new(doc! { "_id": (id), "path": (id) }.as_document())
    }

    fn press(state: &mut State, codes: &[KeyCode]) -> Vec<Effect> {
        let keys = codes.iter().map(|code| KeyEvent::from(*code));
        keys.map(|key| state.press(key)).collect()
    }

    #[test]
    fn the_input_is_edited() {
        use KeyCode::{Backspace, Char, Delete, End, Home, Left, Right};
        let mut state = State::new("ä\x1bb");
        let cases: [(&[KeyCode], &str); 6] = [
            (&[Char('c')], "äbc"),
            (&[Left, Backspace], "äc"),
            (&[Home, Backspace, Char('x')], "xäc"),
            (&[Delete], "xc"),
            (&[End, Right, Delete, Char('é')], "xcé"),
            (&[Backspace, Backspace, Backspace, Backspace], ""),
        ];
        for (codes, expected) in cases {
            press(&mut state, codes);
            assert_eq!(state.input.text(), expected, "{codes:?}");
        }
        assert_eq!(state.paste("two\nlines\x1b[0m"), Effect::Search);
        assert_eq!(state.input.text(), "two lines[0m");
        state.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(state.input.text(), "");
    }

    #[test]
    fn results_are_selected() {
        let mut state = State::new("x");
        assert_eq!(press(&mut state, &[KeyCode::Down]), [Effect::None]);
        let results = vec![result("/a"), result("/b")];
        let message = "2 results\x1b[2J".to_owned();
        let effect = state.receive(Reply::Results { results, message });
        assert_eq!(
            (effect, state.message.as_str()),
            (Effect::Preview, "2 results[2J")
        );
        let effects = press(
            &mut state,
            &[KeyCode::Down, KeyCode::Down, KeyCode::Up, KeyCode::Up],
        );
        let expected = [Effect::Preview, Effect::None, Effect::Preview, Effect::None];
        assert_eq!(effects, expected);
        let preview = |id: &str| Reply::Preview {
            id: id.to_owned(),
            text: "one\x1b[1m\ntwo".to_owned(),
        };
        state.receive(preview("/b"));
        assert!(state.preview.is_empty());
        state.receive(preview("/a"));
        assert_eq!(state.preview, ["one[1m", "two"]);
        assert_eq!(press(&mut state, &[KeyCode::Tab]), [Effect::Facets]);
        assert_eq!(
            press(&mut state, &[KeyCode::Enter, KeyCode::Esc]),
            [Effect::Open, Effect::Leave]
        );
    }
}
