//! Draws the interface.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph, Wrap};

use windrow_file_search::SearchResult;

use super::state::{Panel, State};
use crate::display_text::harmless_line;
use crate::search::result::{ShownResult as _, escape_control, to_single_line};

const HELP: &str =
    "↑↓ select  Enter open  Tab facets/preview  PgUp PgDn scroll  Ctrl-U clear  Esc leave";
/// The minimum width at which the panel is beside the results instead of below them.
const COLUMNS_WIDE: u16 = 80;

/// Draws the interface.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let rows = Layout::vertical([
        Constraint::Length(3),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [input, middle, message, help] = rows.areas(frame.area());
    draw_input(frame, state, input);
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [results, panel] = if middle.width >= COLUMNS_WIDE {
        Layout::horizontal(halves).areas(middle)
    } else {
        Layout::vertical(halves).areas(middle)
    };
    draw_results(frame, state, results);
    draw_panel(frame, state, panel);
    frame.render_widget(Paragraph::new(state.message.as_str()), message);
    frame.render_widget(Paragraph::new(HELP).style(dim()), help);
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Draws the query. If it is too long, the part before the cursor is visible.
fn draw_input(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let block = Block::bordered().title("Search");
    let inner = block.inner(area);
    let before = Span::raw(state.input.before_cursor()).width();
    let width = usize::from(inner.width).saturating_sub(1);
    let hidden = u16::try_from(before.saturating_sub(width)).unwrap_or(u16::MAX);
    let text = Paragraph::new(harmless_line(state.input.text()));
    frame.render_widget(text.scroll((0, hidden)).block(block), area);
    if inner.width > 0 && inner.height > 0 {
        let column = u16::try_from(before.min(width)).unwrap_or(0);
        frame.set_cursor_position(Position::new(inner.x + column, inner.y));
    }
}

fn draw_results(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let items = state
        .results
        .iter()
        .map(|result| ListItem::new(result_text(result)));
    let list = List::new(items)
        .block(Block::bordered().title("Results"))
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let selected = (!state.results.is_empty()).then_some(state.selected);
    let mut list_state = ListState::default().with_selected(selected);
    frame.render_stateful_widget(list, area, &mut list_state);
}

/// Returns the title or name, the path and the matching part of a result.
fn result_text(result: &SearchResult) -> Text<'static> {
    let path = escape_control(&result.id);
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let title = result.shown_title().unwrap_or(name);
    Text::from(vec![
        Line::styled(harmless_line(&title), bold()),
        Line::styled(harmless_line(&path), dim()),
        snippet_line(result),
    ])
}

fn snippet_line(result: &SearchResult) -> Line<'static> {
    if let Some(reason) = &result.unread {
        return Line::styled(harmless_line(reason), dim());
    }
    let hit = bold().fg(Color::Red);
    let (text, mut spans, mut end) = (&result.snippet.text, Vec::new(), 0);
    let piece = |start: usize, end: usize| {
        let piece = text.get(start..end).unwrap_or_default();
        harmless_line(&to_single_line(piece))
    };
    for range in &result.snippet.ranges {
        spans.push(Span::raw(piece(end, range.start)));
        spans.push(Span::styled(piece(range.start, range.end), hit));
        end = range.end;
    }
    spans.push(Span::raw(piece(end, text.len())));
    Line::from(spans)
}

fn draw_panel(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let (title, lines): (_, Vec<Line<'_>>) = match state.panel {
        Panel::Preview => {
            // Only the visible lines are laid out.
            let lines = state.preview.iter().skip(state.scroll);
            let lines = lines.take(usize::from(area.height));
            (
                "Preview",
                lines.map(|line| Line::raw(line.as_str())).collect(),
            )
        }
        Panel::Facets => ("Facets", facet_lines(state)),
    };
    let panel = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(panel.block(Block::bordered().title(title)), area);
}

fn facet_lines(state: &State) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for facet in &state.facets {
        lines.push(Line::styled(facet.name, bold()));
        let values = facet.values.iter();
        lines.extend(
            values.map(|it| Line::raw(format!("{:8}  {}", it.count, harmless_line(&it.value)))),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::worker::{FacetCounts, Reply};
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use windrow_document::doc;
    use windrow_file_search::ValueCount;

    fn state() -> State {
        let mut state = State::new("cake");
        let document = doc! {
            "_id": "/d/evil\x1b[2J.txt", "path": "/d/evil\x1b[2J.txt", "title": "A \x1b]0;title\x07 cake",
            "text": "x", "highlights": [{ "score": 1.0, "texts": [
                { "value": "eat ", "type": "text" }, { "value": "cake\x1b[0m", "type": "hit" }
            ] }],
        };
        state.receive(Reply::Results {
            results: vec![SearchResult::new(document.as_document())],
            message: "1 documents".to_owned(),
        });
        state.receive(Reply::Preview {
            id: "/d/evil\x1b[2J.txt".to_owned(),
            text: "first\x1b[31m\nsecond \u{202e}line".to_owned(),
        });
        state.facets = vec![FacetCounts {
            name: "author",
            values: vec![ValueCount {
                value: "Ada\x1b[1m".to_owned(),
                count: 3,
            }],
        }];
        state
    }

    fn drawn(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let cells = terminal.backend().buffer().content.iter();
        cells.map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn everything_is_shown_harmlessly() {
        let mut state = state();
        let shown = drawn(&state, 100, 20);
        for text in [
            "cake",
            "A ]0;title cake",
            "eat cake[0m",
            "first[31m",
            "second line",
            "1 documents",
        ] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        state.panel = Panel::Facets;
        let facets = drawn(&state, 60, 24);
        assert!(
            facets.contains("author") && facets.contains("3  Ada[1m"),
            "{facets}"
        );
        for text in [shown, facets] {
            assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text}");
        }
    }

    #[test]
    fn any_size_can_be_drawn() {
        let state = state();
        for (width, height) in [(1, 1), (3, 2), (20, 5), (80, 4), (500, 100)] {
            let cells = drawn(&state, width, height).chars().count();
            assert!(cells >= usize::from(width) * usize::from(height));
        }
    }
}
