//! The search thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use windrow_query::{Interrupt, Interrupted};

use windrow_file_search::{
    CountedField, DocumentSource as _, QueryReader, ResultPage, SearchResult, Target, ValueCount,
    find, read_stored_text, with_prefix,
};

use crate::command_line::Failure;
use crate::search::searcher::Searcher;

/// The search thread. Work is sent to it through a channel, and its replies are polled.
pub struct Worker {
    sender: Sender<Work>,
    replies: Receiver<Reply>,
    /// The number of the newest query.
    newest: Arc<AtomicU64>,
}

/// A reply of the thread.
pub enum Reply {
    Results {
        results: Vec<SearchResult>,
        message: String,
    },
    Preview {
        id: String,
        text: String,
    },
    Facets(Vec<FacetCounts>),
    Failure(String),
}

/// The value counts of a property.
pub struct FacetCounts {
    pub name: &'static str,
    pub values: Vec<ValueCount>,
}

/// Work for the query with a number.
struct Work {
    query_number: u64,
    kind: WorkKind,
}

enum WorkKind {
    Search(String),
    Preview(String),
    Facets(String),
}

/// The fields of facets and their labels.
const FACETS: [(&str, CountedField); 5] = [
    ("kind", CountedField::Kind),
    ("extension", CountedField::Extension),
    ("author", CountedField::Author),
    ("year", CountedField::Year),
    ("folder", CountedField::Folder),
];
const FACET_VALUES: u32 = 5;
/// The number of characters of a preview.
const PREVIEW_CHARACTERS: usize = 200_000;

impl Worker {
    /// Starts the thread.
    pub fn start(
        reader: QueryReader,
        mut searcher: Searcher,
        page: ResultPage,
    ) -> Result<Worker, Failure> {
        let (sender, work) = mpsc::channel();
        let (reply_sender, replies) = mpsc::channel();
        let newest = Arc::new(AtomicU64::new(0));
        let current = Arc::new(AtomicU64::new(0));
        searcher.set_interrupt(NewerQuery {
            newest: newest.clone(),
            current: current.clone(),
        });
        let mut thread = WorkerThread {
            reader,
            searcher,
            page,
            newest: newest.clone(),
            current,
        };
        thread::Builder::new()
            .name("search".to_owned())
            .spawn(move || thread.run(&work, &reply_sender))
            .map_err(Failure::runtime)?;
        Ok(Worker {
            sender,
            replies,
            newest,
        })
    }

    /// Starts a search. It interrupts the current one.
    pub fn search(&self, query: &str) {
        self.newest.fetch_add(1, Ordering::Relaxed);
        self.send(WorkKind::Search(query.to_owned()));
    }

    /// Reads a document.
    pub fn preview(&self, id: &str) {
        self.send(WorkKind::Preview(id.to_owned()));
    }

    /// Counts the values of properties.
    pub fn facets(&self, query: &str) {
        self.send(WorkKind::Facets(query.to_owned()));
    }

    fn send(&self, kind: WorkKind) {
        let query_number = self.newest.load(Ordering::Relaxed);
        // Fails only if the thread has panicked: it ends with this struct.
        let _ = self.sender.send(Work { query_number, kind });
    }

    /// Returns the next reply, if any.
    pub fn next_reply(&self) -> Option<Reply> {
        self.replies.try_recv().ok()
    }
}

/// Interrupts a search when there is a newer query.
struct NewerQuery {
    newest: Arc<AtomicU64>,
    current: Arc<AtomicU64>,
}

impl Interrupt for NewerQuery {
    fn check(&self) -> Result<(), Interrupted> {
        if self.newest.load(Ordering::Relaxed) > self.current.load(Ordering::Relaxed) {
            Err(Interrupted::new("there is a newer query"))
        } else {
            Ok(())
        }
    }
}

struct WorkerThread {
    reader: QueryReader,
    searcher: Searcher,
    page: ResultPage,
    newest: Arc<AtomicU64>,
    /// The number of the query of the current work.
    current: Arc<AtomicU64>,
}

impl WorkerThread {
    /// Handles work until the channel is closed. Work for older queries is dropped.
    fn run(&mut self, work: &Receiver<Work>, replies: &Sender<Reply>) {
        while let Ok(Work { query_number, kind }) = work.recv() {
            self.current.store(query_number, Ordering::Relaxed);
            if self.is_outdated(query_number) {
                continue;
            }
            let reply = self
                .work(kind)
                .unwrap_or_else(|failure| Reply::Failure(failure.to_string()));
            if !self.is_outdated(query_number) && replies.send(reply).is_err() {
                return;
            }
        }
    }

    fn is_outdated(&self, query_number: u64) -> bool {
        query_number < self.newest.load(Ordering::Relaxed)
    }

    fn work(&mut self, kind: WorkKind) -> Result<Reply, Failure> {
        match kind {
            WorkKind::Search(query) => self.search(&query),
            WorkKind::Preview(id) => {
                let document = read_stored_text(&mut self.searcher, &id)?;
                let text = document.map(|it| it.unread.unwrap_or(it.text));
                let text = text.unwrap_or_default();
                let text = text.chars().take(PREVIEW_CHARACTERS).collect();
                Ok(Reply::Preview { id, text })
            }
            WorkKind::Facets(query) => self.facets(&query),
        }
    }

    fn search(&mut self, query: &str) -> Result<Reply, Failure> {
        if query.trim().is_empty() {
            return Ok(Reply::Results {
                results: Vec::new(),
                message: "type words to search for".to_owned(),
            });
        }
        let parsed = self.reader.parse(query)?;
        let typed = self.reader.parse(&with_prefix(query));
        let operator = typed.as_ref().unwrap_or(&parsed).query.to_operator();
        let (target, mut results) = (Target::new(operator), Vec::new());
        let found = find(
            &mut self.searcher,
            &target,
            Some(&parsed),
            &self.page,
            &mut |result, _| {
                results.push(result);
                true
            },
        )?;
        let mut notes: Vec<String> = found.notes().collect();
        if notes.is_empty() {
            let total = self.searcher.count(&target.operator)?;
            notes.push(match total {
                1 => "1 document".to_owned(),
                total => format!("{total} documents"),
            });
        }
        let suggestion = found.suggestion;
        notes.extend(suggestion.map(|suggestion| format!("did you mean: {suggestion}")));
        let message = notes.join("; ");
        Ok(Reply::Results { results, message })
    }

    fn facets(&mut self, query: &str) -> Result<Reply, Failure> {
        if query.trim().is_empty() {
            return Ok(Reply::Facets(Vec::new()));
        }
        let operator = self.reader.parse(query)?.query.to_operator();
        let mut all = Vec::new();
        for (name, field) in FACETS {
            let reply = self
                .searcher
                .first(&field.pipeline(&operator, FACET_VALUES))?;
            let values = reply.map(|reply| field.counts(reply.as_document(), FACET_VALUES));
            let values = values.unwrap_or_default();
            if !values.is_empty() {
                all.push(FacetCounts { name, values });
            }
        }
        Ok(Reply::Facets(all))
    }
}
