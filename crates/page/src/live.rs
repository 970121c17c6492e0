//! Streams of server-sent events: one task for each thing that is looked at, however many look.
//! Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::body::PageBody;
use crate::route::{Live, Look};

/// The tasks that look, by what they look at.
#[derive(Clone, Debug, Default)]
pub struct LiveStreams {
    streams: Arc<Mutex<HashMap<String, watch::Receiver<Bytes>>>>,
}

/// Browsers that have gone are noticed when something is sent to them.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// A comment, which browsers ignore.
const COMMENT: &[u8] = b":\n\n";

/// Runs one look on a thread that may block. Returns the look with what it saw, or `None` if it ends.
pub type RunLook = Arc<dyn Fn(Look) -> LookFuture + Send + Sync>;

/// The result of a look.
pub type LookFuture = std::pin::Pin<Box<dyn Future<Output = Option<Seen>> + Send>>;

/// A look, and what it saw: a text, or the sentence of an error.
pub struct Seen {
    /// Looks again.
    pub look: Look,
    /// What it saw.
    pub result: Result<String, String>,
}

impl LiveStreams {
    /// Returns the stream of a thing. `look` makes its events if it is new.
    pub fn subscribe(&self, key: &str, live: Live, look: Look, run: RunLook) -> PageBody {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let known = streams.get(key).filter(|known| known.has_changed().is_ok());
        let seen = match known {
            Some(known) => known.clone(),
            None => {
                let (sender, seen) = watch::channel(Bytes::new());
                tokio::spawn(look_again(live.interval, look, run, sender));
                streams.insert(key.to_owned(), seen.clone());
                seen
            }
        };
        drop(streams);
        let (pieces, body) = mpsc::channel(1);
        tokio::spawn(forward(seen, pieces));
        PageBody::Pieces(body, None)
    }

    /// Removes the streams without readers.
    pub fn clean(&self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|_, seen| seen.has_changed().is_ok());
    }
}

/// Makes an event in each interval until the stream has no reader. The table has one receiver, which
/// does not count.
async fn look_again(
    interval: Duration,
    mut look: Look,
    run: RunLook,
    sender: watch::Sender<Bytes>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if sender.receiver_count() <= 1 {
            return;
        }
        let Some(seen) = run(look).await else {
            return;
        };
        look = seen.look;
        let event = match seen.result {
            Ok(text) => format_event(None, &text),
            Err(message) => format_event(Some("problem"), &message),
        };
        // What has not changed is not sent again.
        sender.send_if_modified(|known| {
            let is_new = *known != event;
            *known = event.into();
            is_new
        });
    }
}

/// Sends events to a browser until it has gone, or until the task ends.
async fn forward(mut seen: watch::Receiver<Bytes>, pieces: mpsc::Sender<Bytes>) {
    seen.mark_changed();
    loop {
        let piece = match tokio::time::timeout(SILENCE_MAX, seen.changed()).await {
            Ok(Ok(())) => seen.borrow_and_update().clone(),
            Ok(Err(_)) => return,
            Err(_) => Bytes::from_static(COMMENT),
        };
        // Nothing has been seen yet.
        let piece = if piece.is_empty() {
            Bytes::from_static(COMMENT)
        } else {
            piece
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

/// Formats an event. Each line of the text is a line of its data.
fn format_event(name: Option<&str>, text: &str) -> Vec<u8> {
    let mut event = String::with_capacity(text.len() + 64);
    if let Some(name) = name {
        event.push_str("event: ");
        event.push_str(name);
        event.push('\n');
    }
    for line in text.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_lines() {
        let cases = [
            (None, "a", "data: a\n\n"),
            (
                None,
                "a\nb\r\nevent: x",
                "data: a\ndata: b\ndata: \ndata: event: x\n\n",
            ),
            (Some("problem"), "", "event: problem\ndata: \n\n"),
        ];
        for (name, text, expected) in cases {
            assert_eq!(
                String::from_utf8(format_event(name, text)).unwrap(),
                expected
            );
        }
    }
}
