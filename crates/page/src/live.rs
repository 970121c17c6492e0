//! Streams of server-sent events. One task polls for all browsers that watch the same address with
//! the same rights. Source: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::body::PageBody;
use crate::route::{EventStream, PollFunction};

/// The polling tasks, by the address and session that they serve.
#[derive(Clone, Debug, Default)]
pub struct EventStreams {
    streams: Arc<Mutex<HashMap<String, watch::Receiver<Bytes>>>>,
}

/// A comment is sent after this time without events. A failed send is the only sign that a browser
/// has disconnected.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// An empty comment, which browsers ignore.
const COMMENT: &[u8] = b":\n\n";

/// Runs a poll on a thread that may block. Returns `None` if the stream must end.
pub type RunPoll = Arc<dyn Fn(PollFunction) -> PollFuture + Send + Sync>;

/// The future of a poll.
pub type PollFuture = std::pin::Pin<Box<dyn Future<Output = Option<PollResult>> + Send>>;

/// The result of a poll, with the function for the next poll.
pub struct PollResult {
    /// The function, to be called again.
    pub poll: PollFunction,
    /// The text of the event, or an error message.
    pub result: Result<String, String>,
}

impl EventStreams {
    /// Returns the body of a stream. `poll` produces the events if no task serves the key.
    pub fn subscribe(
        &self,
        key: &str,
        live: EventStream,
        poll: PollFunction,
        run: RunPoll,
    ) -> PageBody {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let known = streams.get(key).filter(|known| known.has_changed().is_ok());
        let events = match known {
            Some(known) => known.clone(),
            None => {
                let (sender, events) = watch::channel(Bytes::new());
                tokio::spawn(poll_repeatedly(live.interval, poll, run, sender));
                streams.insert(key.to_owned(), events.clone());
                events
            }
        };
        drop(streams);
        let (sender, chunks) = mpsc::channel(1);
        tokio::spawn(forward(events, sender));
        PageBody::Streamed {
            first: None,
            chunks,
            guard: None,
        }
    }

    /// Removes the streams without readers.
    pub fn clean(&self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|_, events| events.has_changed().is_ok());
    }
}

/// Polls in each interval until the stream has no reader. The map `streams` holds one receiver,
/// which does not count as a reader.
async fn poll_repeatedly(
    interval: Duration,
    mut poll: PollFunction,
    run: RunPoll,
    sender: watch::Sender<Bytes>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if sender.receiver_count() <= 1 {
            return;
        }
        let Some(polled) = run(poll).await else {
            return;
        };
        poll = polled.poll;
        let event = match polled.result {
            Ok(text) => format_event(None, &text),
            Err(message) => format_event(Some("problem"), &message),
        };
        // Unchanged events are not sent again.
        sender.send_if_modified(|known| {
            let is_new = *known != event;
            *known = event.into();
            is_new
        });
    }
}

/// Sends events to a browser until it disconnects or the polling task ends.
async fn forward(mut events: watch::Receiver<Bytes>, sender: mpsc::Sender<io::Result<Bytes>>) {
    events.mark_changed();
    loop {
        let chunk = match tokio::time::timeout(SILENCE_MAX, events.changed()).await {
            Ok(Ok(())) => events.borrow_and_update().clone(),
            Ok(Err(_)) => return,
            Err(_) => Bytes::from_static(COMMENT),
        };
        // The first poll has not ended.
        let chunk = if chunk.is_empty() {
            Bytes::from_static(COMMENT)
        } else {
            chunk
        };
        if sender.send(Ok(chunk)).await.is_err() {
            return;
        }
    }
}

/// Formats an event. Each line of the text becomes a `data` line.
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
