//! Draws a report on a terminal, or prints it as text.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::state::{SortColumn, State};
use crate::display_text::harmless_line;
use crate::server_report::page::{
    COLLECTION_HEADER, OPERATION_HEADER, collection_line, number_lines, operation_line, title,
};

const HELP: &str = "q leave  p pause  s sort collections  ↑↓ scroll operations";

/// The height of the values with their frame.
const NUMBER_LINES: u16 = 13;

/// Draws the interface.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let [title, numbers, operations, collections, message, help] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(NUMBER_LINES),
        Constraint::Fill(2),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(title_line(state)).style(bold()), title);
    if let Some(report) = &state.report {
        draw_lines(frame, "Server", number_lines(report), numbers);
        let running = report.running.iter().skip(state.scroll);
        let lines = std::iter::once(OPERATION_HEADER.to_owned()).chain(running.map(operation_line));
        let count = report.running.len();
        draw_lines(
            frame,
            &format!("Operations ({count})"),
            lines.collect(),
            operations,
        );
        let rows = state.collections().into_iter().map(collection_line);
        let lines = std::iter::once(COLLECTION_HEADER.to_owned()).chain(rows);
        let title = match state.sort {
            SortColumn::Total => "Collections by total time",
            SortColumn::Reads => "Collections by time of reads",
            SortColumn::Writes => "Collections by time of writes",
        };
        draw_lines(frame, title, lines.collect(), collections);
    }
    draw_message(frame, state, message);
    frame.render_widget(Paragraph::new(HELP).style(dim()), help);
}

fn draw_lines(frame: &mut Frame<'_>, title: &str, lines: Vec<String>, area: Rect) {
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::raw).collect();
    let block = Block::bordered().title(title.to_owned());
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_message(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let missing = state.report.as_ref().map(|it| it.missing.join("; "));
    let (text, style) = match (&state.failure, state.is_paused) {
        (Some(failure), _) => (harmless_line(failure), bold().fg(Color::Red)),
        (None, true) => ("paused".to_owned(), bold()),
        (None, false) => (missing.unwrap_or_default(), dim()),
    };
    frame.render_widget(Paragraph::new(text).style(style), area);
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn title_line(state: &State) -> String {
    match &state.report {
        None => format!("windrow top  {}", harmless_line(&state.server)),
        Some(report) => title(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_report::page::text;
    use crate::server_report::{Report, Sample};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::{Duration, Instant};
    use windrow_document::{DocumentBuf, doc};

    fn sample(at: Instant, factor: i64) -> Sample {
        let operation = doc! {
            "active": true, "opid": 7, "op": "query", "ns": "shop.orders\x1b[2J", "microsecs_running": 2_500_000,
            "command": { "find": "orders", "filter": { "secret": "4711" } }, "client": "127.0.0.1:5",
            "planSummary": "COLLSCAN", "effectiveUsers": [{ "user": "ann", "db": "shop" }],
        };
        let watching = doc! { "active": true, "opid": 8, "command": { "hello": 1 } };
        Sample {
            at,
            status: doc! {
                "host": "vm:27017", "uptime": 3725.0, "windrow": { "version": "0.1.0" },
                "opcounters": { "insert": (100 * factor) },
                "opLatencies": { "reads": { "ops": factor, "histogram": [{ "micros": 1024, "count": factor }] } },
            },
            collections: Some(doc! {
                "shop.orders": {
                    "total": { "count": factor, "time": (1000 * factor) },
                    "readLock": { "count": 0, "time": 0 }, "writeLock": { "count": 0, "time": 0 },
                },
            }),
            operations: vec![operation, watching],
            missing: Vec::new(),
        }
    }

    fn report() -> Report {
        let now = Instant::now();
        Report::from_samples(&sample(now, 1), &sample(now + Duration::from_secs(2), 3))
    }

    #[test]
    fn everything_is_shown_without_values_of_statements() {
        let mut state = State::new("127.0.0.1:27017");
        state.receive(Ok(Box::new(report())));
        let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
        terminal.draw(|frame| draw(frame, &state)).unwrap();
        let cells = terminal.backend().buffer().content.iter();
        let shown: String = cells.map(|cell| cell.symbol()).collect();
        let text = text(&report());
        for text in [&shown, &text] {
            for expected in [
                "vm:27017",
                "up 1 h 2 min",
                "insert 100",
                "2.5          7  find",
                "ann@shop",
                "COLLSCAN",
                "1.0",
            ] {
                assert!(text.contains(expected), "{expected}: {text}");
            }
            assert!(!text.contains("4711") && !text.contains('\x1b') && !text.contains("hello"));
        }
    }

    #[test]
    fn any_size_can_be_drawn() {
        let mut state = State::new("h");
        state.receive(Err("the server is away".to_owned()));
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &state)).unwrap();
        }
    }

    #[test]
    fn a_report_is_json() {
        let document = report().to_document();
        let field = |path: &[&str]| -> DocumentBuf {
            let within = document.get(path[0]).unwrap();
            within.as_document().unwrap().to_buf()
        };
        assert_eq!(
            field(&["operationsPerSecond"])
                .get("insert")
                .unwrap()
                .as_f64(),
            Some(100.0)
        );
        assert_eq!(document.to_string().matches("4711").count(), 0);
    }
}
