//! One collection as a list of documents, with the commands that the recordings use.

use windrow_document::{Document, DocumentBuf, Timestamp, Value, ValueRef, doc};
use windrow_mql::Error;
use windrow_mql::filter::Filter;
use windrow_mql::update::{Update, UpdateContext};

/// Stands for every ObjectId that a server makes.
const GENERATED: &str = "<generated ObjectId>";

/// Why a case did not pass.
pub enum Refusal {
    PassedOver(String),
    Difference(String),
}

fn passed_over<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::PassedOver(why.into()))
}

fn check(what: &str, actual: &Value, expected: &Value) -> Result<(), Refusal> {
    if actual == expected || actual.to_string() == expected.to_string() {
        return Ok(());
    }
    Err(Refusal::Difference(format!(
        "{what}\n      is {actual}\n  should {expected}"
    )))
}

#[derive(Default)]
pub struct Collection {
    documents: Vec<DocumentBuf>,
}

/// One statement of an update.
struct Statement<'a> {
    query: Document<'a>,
    update: ValueRef<'a>,
    array_filters: Vec<Document<'a>>,
    multi: bool,
    upsert: bool,
}

#[derive(Default)]
struct Outcome {
    matched: i32,
    modified: i32,
    upserted: Option<Value>,
    error: Option<Error>,
}

fn flag(document: Document<'_>, name: &str) -> bool {
    document.get(name).is_some_and(ValueRef::is_truthy)
}

fn documents<'a>(document: Document<'a>, name: &str) -> Vec<Document<'a>> {
    let array = document.get(name).and_then(ValueRef::as_array);
    array
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document)
        .collect()
}

fn context() -> UpdateContext<'static> {
    UpdateContext::at(
        1_700_000_000_000,
        Timestamp {
            seconds: 1_700_000_000,
            increment: 1,
        },
    )
}

impl Collection {
    /// Runs a command and compares its reply as far as updates decide it.
    pub fn step(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let (command, _) = run.first().expect("a command");
        if ["collation", "hint", "let", "c"]
            .iter()
            .any(|option| run.contains(option))
        {
            return passed_over("options");
        }
        match command {
            "insert" => self.insert(run, reply),
            "update" => self.update(run, reply),
            "delete" => self.delete(run, reply),
            "find" => self.find(run, reply),
            "findAndModify" => self.find_and_modify(run, reply),
            "count" => self.count(run, reply),
            other => passed_over(other),
        }
    }

    fn insert(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if reply.contains("writeErrors") || !flag(reply, "ok") {
            return passed_over("failing insert");
        }
        for document in documents(run, "documents") {
            self.documents.push(with_id(document.to_buf()));
        }
        Ok(())
    }

    fn delete(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if reply.contains("writeErrors") || !flag(reply, "ok") {
            return passed_over("failing delete");
        }
        for statement in documents(run, "deletes") {
            let query = statement.get("q").and_then(ValueRef::as_document);
            let Ok(filter) = Filter::parse(query.unwrap_or(Document::EMPTY)) else {
                return passed_over("failing delete");
            };
            let one = statement.get("limit").and_then(ValueRef::as_whole) == Some(1);
            let places = self.matching(&filter);
            let places = if one {
                places.into_iter().take(1).collect()
            } else {
                places
            };
            places
                .into_iter()
                .rev()
                .for_each(|place| drop(self.documents.remove(place)));
        }
        Ok(())
    }

    fn matching(&self, filter: &Filter) -> Vec<usize> {
        let matches = |document: &DocumentBuf| filter.matches(document.as_document()).unwrap();
        let all = self.documents.iter().enumerate();
        all.filter(|(_, document)| matches(document))
            .map(|(place, _)| place)
            .collect()
    }

    fn update(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let ordered = run.get("ordered").is_none_or(ValueRef::is_truthy);
        let (mut matched, mut modified) = (0, 0);
        let (mut upserted, mut errors) = (Vec::new(), Vec::new());
        for (index, statement) in documents(run, "updates").into_iter().enumerate() {
            if statement.contains("collation")
                || statement.contains("hint")
                || statement.contains("c")
            {
                return passed_over("options");
            }
            let Some(update) = statement.get("u") else {
                return passed_over("malformed");
            };
            let statement = Statement {
                query: statement
                    .get("q")
                    .and_then(ValueRef::as_document)
                    .unwrap_or(Document::EMPTY),
                update,
                array_filters: documents(statement, "arrayFilters"),
                multi: flag(statement, "multi"),
                upsert: flag(statement, "upsert"),
            };
            let outcome = self.apply(&statement)?;
            matched += outcome.matched;
            modified += outcome.modified;
            if let Some(id) = outcome.upserted {
                upserted.push(Value::from(doc! { "index": (index as i32), "_id": id }));
            }
            if let Some(error) = outcome.error {
                errors.push(Value::from(
                    doc! { "index": (index as i32), "code": (error.code) },
                ));
                if ordered {
                    break;
                }
            }
        }
        if !flag(reply, "ok") {
            let codes = errors.first().map(ToString::to_string);
            let code = reply
                .get("code")
                .map(|code| format!("{{\"index\":0,\"code\":{code}}}"));
            return match codes == code {
                true => Ok(()),
                false => passed_over("malformed"),
            };
        }
        let mut actual = doc! { "n": matched, "nModified": modified };
        if !upserted.is_empty() {
            actual.push("upserted", upserted);
        }
        if !errors.is_empty() {
            actual.push("writeErrors", errors);
        }
        check(&run.to_string(), &actual.into(), &summary(reply).into())
    }

    fn apply(&mut self, statement: &Statement<'_>) -> Result<Outcome, Refusal> {
        let mut outcome = Outcome::default();
        let parsed = Filter::parse(statement.query).and_then(|filter| {
            Ok((
                filter,
                Update::parse(statement.update, &statement.array_filters)?,
            ))
        });
        let (filter, update) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                outcome.error = Some(error);
                return Ok(outcome);
            }
        };
        if update.is_replacement() && statement.multi {
            outcome.error = Some(Error::failed_to_parse("multi update with a replacement"));
            return Ok(outcome);
        }
        let context = context();
        let mut places = self.matching(&filter);
        places.truncate(if statement.multi { usize::MAX } else { 1 });
        if places.is_empty() && statement.upsert {
            self.upsert(&update, &filter, &mut outcome);
            return Ok(outcome);
        }
        for place in places {
            let original = self.documents[place].as_document();
            match update.apply(original, &context.with_filter(&filter)) {
                Ok(applied) => {
                    outcome.matched += 1;
                    if let Some(document) = applied.document {
                        Document::from_bytes(document.as_bytes()).expect("valid bytes");
                        outcome.modified += 1;
                        self.documents[place] = document;
                    }
                }
                // A statement that fails half-way reports no counts.
                Err(error) => {
                    return Ok(Outcome {
                        error: Some(error),
                        ..Outcome::default()
                    });
                }
            }
        }
        Ok(outcome)
    }

    fn upsert(&mut self, update: &Update, filter: &Filter, outcome: &mut Outcome) {
        match update.upsert(filter, &context()) {
            Ok(document) => {
                Document::from_bytes(document.as_bytes()).expect("valid bytes");
                let document = with_id(document);
                let id = document.get("_id").expect("an _id").to_value();
                let is_known = |known: &DocumentBuf| known.get("_id").unwrap().equals(id.as_ref());
                if id.as_ref().as_str() != Some(GENERATED) && self.documents.iter().any(is_known) {
                    outcome.error = Some(Error::new(11000, "duplicate key"));
                    return;
                }
                outcome.matched = 1;
                outcome.upserted = Some(id);
                self.documents.push(document);
            }
            Err(error) => outcome.error = Some(error),
        }
    }

    fn sorted(
        &self,
        places: Vec<usize>,
        sort: Option<Document<'_>>,
    ) -> Result<Vec<usize>, Refusal> {
        let mut places = places;
        let fields: Vec<(&str, ValueRef<'_>)> = sort.into_iter().flatten().collect();
        let plain = |name: &&str| **name == *"_id";
        if places.len() > 1 && !fields.iter().map(|(name, _)| name).all(|name| plain(name)) {
            return passed_over("sort");
        }
        for (name, direction) in fields.iter().rev() {
            let value = |place: &usize| self.documents[*place].get(name).unwrap_or(ValueRef::Null);
            places.sort_by(|one, other| value(one).compare(value(other)));
            if direction.as_whole() == Some(-1) {
                places.reverse();
            }
        }
        Ok(places)
    }

    fn find(&self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if run.contains("projection") || !flag(reply, "ok") {
            return passed_over("find");
        }
        let query = run
            .get("filter")
            .and_then(ValueRef::as_document)
            .unwrap_or(Document::EMPTY);
        let filter = Filter::parse(query).expect("a filter");
        let sort = run.get("sort").and_then(ValueRef::as_document);
        let places = self.sorted(self.matching(&filter), sort)?;
        let found = places
            .into_iter()
            .map(|place| Value::from(self.documents[place].clone()));
        let found: Vec<Value> = found.collect();
        let batch = reply
            .get("cursor")
            .and_then(ValueRef::as_document)
            .expect("a cursor");
        let batch = batch.get("firstBatch").expect("a batch").to_value();
        check("find", &found.into(), &batch)
    }

    fn count(&self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let query = run
            .get("query")
            .and_then(ValueRef::as_document)
            .unwrap_or(Document::EMPTY);
        let count = self
            .matching(&Filter::parse(query).expect("a filter"))
            .len();
        check(
            "count",
            &(count as i32).into(),
            &reply.get("n").expect("n").to_value(),
        )
    }

    fn find_and_modify(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let query = run
            .get("query")
            .and_then(ValueRef::as_document)
            .unwrap_or(Document::EMPTY);
        let code = reply.get("code").and_then(ValueRef::as_whole);
        let Ok(filter) = Filter::parse(query) else {
            return if code.is_some() {
                Ok(())
            } else {
                passed_over("filter")
            };
        };
        let sort = run.get("sort").and_then(ValueRef::as_document);
        let places = self.sorted(self.matching(&filter), sort)?;
        if flag(run, "remove") {
            let removed = places.first().map(|place| self.documents.remove(*place));
            return compare_value(run, reply, removed);
        }
        let Some(update) = run.get("update") else {
            return passed_over("malformed");
        };
        let outcome = self.find_one_and_update(run, update, &filter, places.first().copied());
        match (outcome, code) {
            (Ok(value), None) => compare_value(run, reply, value),
            (Err(error), Some(code)) if i64::from(error.code) == code => Ok(()),
            (outcome, _) => Err(Refusal::Difference(format!(
                "{run} gave {outcome:?}, not {reply}"
            ))),
        }
    }

    fn find_one_and_update(
        &mut self,
        run: Document<'_>,
        update: ValueRef<'_>,
        filter: &Filter,
        place: Option<usize>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let update = Update::parse(update, &documents(run, "arrayFilters"))?;
        let returns_new = flag(run, "new");
        let Some(place) = place else {
            if !flag(run, "upsert") {
                return Ok(None);
            }
            let document = with_id(update.upsert(filter, &context())?);
            self.documents.push(document.clone());
            return Ok(returns_new.then_some(document));
        };
        let old = self.documents[place].clone();
        let applied = update.apply(old.as_document(), &context().with_filter(filter))?;
        let new = applied.document.unwrap_or_else(|| old.clone());
        self.documents[place] = new.clone();
        Ok(Some(if returns_new { new } else { old }))
    }
}

fn compare_value(
    run: Document<'_>,
    reply: Document<'_>,
    value: Option<DocumentBuf>,
) -> Result<(), Refusal> {
    if run.contains("fields") {
        return Ok(());
    }
    let expected = reply.get("value").map_or(Value::Null, ValueRef::to_value);
    check(&run.to_string(), &value.into(), &expected)
}

/// The parts of an update's reply that an update decides.
fn summary(reply: Document<'_>) -> DocumentBuf {
    let mut summary = DocumentBuf::new();
    for name in ["n", "nModified", "upserted"] {
        if let Some(value) = reply.get(name) {
            summary.push(name, value);
        }
    }
    let errors = documents(reply, "writeErrors").into_iter().map(|error| {
        let part = |name| error.get(name).expect(name).to_value();
        Value::from(doc! { "index": (part("index")), "code": (part("code")) })
    });
    let errors: Vec<Value> = errors.collect();
    if !errors.is_empty() {
        summary.push("writeErrors", errors);
    }
    summary
}

fn with_id(document: DocumentBuf) -> DocumentBuf {
    if let Some(id) = document.get("_id") {
        let mut ordered = doc! { "_id": (id.to_value()) };
        for (name, value) in document.iter().filter(|(name, _)| *name != "_id") {
            ordered.push(name, value);
        }
        return ordered;
    }
    let mut named = doc! { "_id": GENERATED };
    document
        .iter()
        .for_each(|(name, value)| named.push(name, value));
    named
}
