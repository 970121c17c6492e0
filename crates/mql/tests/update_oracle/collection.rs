//! A collection as a list of documents, with the commands of the recordings.

use windrow_document::{Array, Document, DocumentBuf, Timestamp, Value, ValueRef, doc};
use windrow_mql::expression::Variables;
use windrow_mql::filter::Filter;
use windrow_mql::sort::Sort;
use windrow_mql::update::{Update, UpdateContext, check_upsert_filter};
use windrow_mql::{Error, Meta};

/// The placeholder of every ObjectId that a server generates.
const GENERATED: &str = "<generated ObjectId>";

/// Why a case did not pass.
pub enum Refusal {
    Skipped(String),
    Difference(String),
}

fn skipped<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Skipped(why.into()))
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

/// A statement of an update.
struct Statement<'a> {
    query: Document<'a>,
    hint: Option<ValueRef<'a>>,
    constants: Variables,
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

fn constants(statement: Document<'_>) -> Variables {
    let mut variables = Variables::new();
    let constants = statement.get("c").and_then(ValueRef::as_document);
    for (name, value) in constants.into_iter().flatten() {
        variables.set(name, Some(value.to_value()));
    }
    variables
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
    UpdateContext::new(
        1_700_000_000_000,
        Timestamp {
            seconds: 1_700_000_000,
            increment: 1,
        },
    )
}

impl Collection {
    /// Runs a command and compares those parts of its reply that updates determine.
    pub fn step(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let (command, _) = run.first().expect("a command");
        let refused_by_index = |error: &Document<'_>| {
            let code = error.get("code").and_then(ValueRef::as_whole);
            code.is_some_and(|code| [11000, 16755, 16766, 171].contains(&code))
        };
        let id_key = |error: &Document<'_>| {
            let pattern = error.get("keyPattern").and_then(ValueRef::as_document);
            pattern.is_some_and(|pattern| pattern.contains("_id"))
        };
        let text = run.to_string();
        if ["\"$text\":", "\"$near\":"]
            .iter()
            .any(|operator| text.contains(operator))
        {
            return skipped("indexed operators");
        }
        let errors = documents(reply, "writeErrors");
        if errors
            .iter()
            .chain([&reply])
            .any(|error| refused_by_index(error) && !id_key(error))
        {
            return skipped("indexes");
        }
        if command == "findAndModify" && run.contains("hint") {
            return skipped("hint");
        }
        if ["collation", "let"]
            .iter()
            .any(|option| run.contains(option))
        {
            return skipped("options");
        }
        match command {
            "insert" => self.insert(run, reply),
            "update" => self.update(run, reply),
            "delete" => self.delete(run, reply),
            "find" => self.find(run, reply),
            "findAndModify" => self.find_and_modify(run, reply),
            "count" => self.count(run, reply),
            "createIndexes" if flag(reply, "ok") => Ok(()),
            other => skipped(other),
        }
    }

    fn insert(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if reply.contains("writeErrors") || !flag(reply, "ok") {
            return skipped("failing insert");
        }
        for document in documents(run, "documents") {
            self.documents.push(with_id(document.to_buf()));
        }
        Ok(())
    }

    fn delete(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if reply.contains("writeErrors") || !flag(reply, "ok") {
            return skipped("failing delete");
        }
        for statement in documents(run, "deletes") {
            let query = statement.get("q").and_then(ValueRef::as_document);
            let Ok(filter) = Filter::parse(query.unwrap_or(Document::EMPTY)) else {
                return skipped("failing delete");
            };
            let one = statement.get("limit").and_then(ValueRef::as_whole) == Some(1);
            let indexes = self.hinted(self.matching(&filter), statement.get("hint"))?;
            let mut indexes = if one {
                indexes.into_iter().take(1).collect()
            } else {
                indexes
            };
            indexes.sort_unstable();
            indexes
                .into_iter()
                .rev()
                .for_each(|index| drop(self.documents.remove(index)));
        }
        Ok(())
    }

    fn matching(&self, filter: &Filter) -> Vec<usize> {
        let matches = |document: &DocumentBuf| filter.matches(document.as_document()).unwrap();
        let all = self.documents.iter().enumerate();
        all.filter(|(_, document)| matches(document))
            .map(|(index, _)| index)
            .collect()
    }

    fn update(&mut self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        let ordered = run.get("ordered").is_none_or(ValueRef::is_truthy);
        let (mut matched, mut modified) = (0, 0);
        let (mut upserted, mut errors) = (Vec::new(), Vec::new());
        for (index, statement) in documents(run, "updates").into_iter().enumerate() {
            if statement.contains("collation") {
                return skipped("options");
            }
            let Some(update) = statement.get("u") else {
                return skipped("malformed");
            };
            let statement = Statement {
                hint: statement.get("hint"),
                constants: constants(statement),
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
            return if codes == code {
                Ok(())
            } else {
                skipped("malformed")
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
        // The update is parsed first, so its errors have priority.
        let update = Update::parse_with(
            statement.update,
            &statement.array_filters,
            &statement.constants,
        );
        let parsed = update.and_then(|update| {
            let filter = Filter::parse(statement.query)?;
            if statement.upsert {
                check_upsert_filter(&filter)?;
            }
            Ok((filter, update))
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
        let context = UpdateContext {
            variables: Some(&statement.constants),
            ..context()
        };
        let mut indexes = self.hinted(self.matching(&filter), statement.hint)?;
        indexes.truncate(if statement.multi { usize::MAX } else { 1 });
        if indexes.is_empty() && statement.upsert {
            self.upsert(&update, &filter, &mut outcome);
            return Ok(outcome);
        }
        for index in indexes {
            let original = self.documents[index].as_document();
            match update.apply(original, &context.with_filter(&filter)) {
                Ok(applied) => {
                    outcome.matched += 1;
                    if let Some(document) = applied.document {
                        Document::from_bytes(document.as_bytes()).expect("valid bytes");
                        outcome.modified += 1;
                        self.documents[index] = document;
                    }
                }
                // A statement that fails in the middle reports no counts.
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
                if self.knows_id(&document) {
                    outcome.error = Some(Error::new(11000, "duplicate key"));
                    return;
                }
                outcome.matched = 1;
                outcome.upserted = document.get("_id").map(ValueRef::to_value);
                self.documents.push(document);
            }
            Err(error) => outcome.error = Some(error),
        }
    }

    fn has_generated_id(&self, index: usize) -> bool {
        self.documents[index].get("_id").and_then(ValueRef::as_str) == Some(GENERATED)
    }

    fn knows_id(&self, document: &DocumentBuf) -> bool {
        let id = document.get("_id").expect("an _id");
        let ids = self.documents.iter().filter_map(|known| known.get("_id"));
        id.as_str() != Some(GENERATED) && ids.into_iter().any(|known| known.equals(id))
    }

    /// The indexes of the documents in the order of a hinted index, if it is known here.
    fn hinted(
        &self,
        mut indexes: Vec<usize>,
        hint: Option<ValueRef<'_>>,
    ) -> Result<Vec<usize>, Refusal> {
        let id = |index: &usize| self.documents[*index].get("_id").unwrap();
        match hint.map(|hint| hint.to_string()).as_deref() {
            None | Some("{\"$natural\":1}") => {}
            Some("{\"_id\":1}" | "\"_id_\"") => {
                indexes.sort_by(|one, other| id(one).compare(id(other)));
            }
            _ => return skipped("hint"),
        }
        Ok(indexes)
    }

    fn sorted(
        &self,
        mut indexes: Vec<usize>,
        sort: Option<Document<'_>>,
    ) -> Result<Vec<usize>, Refusal> {
        let sort = match Sort::parse(sort.unwrap_or(Document::EMPTY)) {
            Ok(sort) if sort.natural().is_none() => sort,
            _ => return skipped("sort"),
        };
        indexes.sort_by_cached_key(|index| {
            let mut key = Vec::new();
            let document = self.documents[*index].as_document();
            sort.key(document, &Meta::default(), &mut key)
                .expect("a key");
            key
        });
        Ok(indexes)
    }

    fn find(&self, run: Document<'_>, reply: Document<'_>) -> Result<(), Refusal> {
        if run.contains("projection") || !flag(reply, "ok") {
            return skipped("find");
        }
        let query = run.get("filter").and_then(ValueRef::as_document);
        let filter = Filter::parse(query.unwrap_or(Document::EMPTY)).expect("a filter");
        let sort = run.get("sort").and_then(ValueRef::as_document);
        let indexes = self.matching(&filter);
        let batch = reply
            .get("cursor")
            .and_then(ValueRef::as_document)
            .expect("a cursor");
        let batch = batch
            .get("firstBatch")
            .and_then(ValueRef::as_array)
            .expect("a batch");
        let Ok(indexes) = self.hinted(indexes.clone(), run.get("hint")) else {
            return self.check_some(&indexes, batch);
        };
        let indexes = self.sorted(indexes, sort)?;
        if sort.is_some() && indexes.iter().any(|index| self.has_generated_id(*index)) {
            return skipped("order of generated ids");
        }
        let found = indexes
            .into_iter()
            .map(|index| Value::from(self.documents[index].clone()));
        let found: Vec<Value> = found.collect();
        check("find", &found.into(), &batch.into())
    }

    /// Checks a result of a sparse or partial index, which contains some documents in its order.
    fn check_some(&self, indexes: &[usize], batch: Array<'_>) -> Result<(), Refusal> {
        let found = indexes
            .iter()
            .map(|index| self.documents[*index].as_document());
        let found: Vec<String> = found.map(|document| document.to_string()).collect();
        match batch
            .iter()
            .find(|expected| !found.contains(&expected.to_string()))
        {
            Some(missing) => Err(Refusal::Difference(format!(
                "find\n  lacks {missing}\n  has {found:?}"
            ))),
            None => Ok(()),
        }
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
                skipped("filter")
            };
        };
        let sort = run.get("sort").and_then(ValueRef::as_document);
        let indexes = self.sorted(self.matching(&filter), sort)?;
        if !flag(reply, "ok")
            && ["remove", "fields", "projection"]
                .iter()
                .any(|name| run.contains(name))
        {
            return skipped("options");
        }
        let plain = [
            "findAndModify",
            "query",
            "sort",
            "update",
            "new",
            "upsert",
            "arrayFilters",
        ];
        let is_plain = run.iter().all(|(name, _)| plain.contains(&name));
        if !flag(reply, "ok") && (!is_plain || code == Some(73)) {
            return skipped("options");
        }
        if flag(run, "remove") {
            let removed = indexes.first().map(|index| self.documents.remove(*index));
            return compare_value(run, reply, removed);
        }
        let Some(update) = run.get("update") else {
            return skipped("malformed");
        };
        let outcome = self.find_one_and_update(run, update, &filter, indexes.first().copied());
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
        index: Option<usize>,
    ) -> Result<Option<DocumentBuf>, Error> {
        let update = Update::parse(update, &documents(run, "arrayFilters"))?;
        if flag(run, "upsert") {
            check_upsert_filter(filter)?;
        }
        let returns_new = flag(run, "new");
        let Some(index) = index else {
            if !flag(run, "upsert") {
                return Ok(None);
            }
            let document = with_id(update.upsert(filter, &context())?);
            if self.knows_id(&document) {
                return Err(Error::new(11000, "duplicate key"));
            }
            self.documents.push(document.clone());
            return Ok(returns_new.then_some(document));
        };
        let old = self.documents[index].clone();
        let applied = update.apply(old.as_document(), &context().with_filter(filter))?;
        let new = applied.document.unwrap_or_else(|| old.clone());
        self.documents[index] = new.clone();
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

/// The parts of an update's reply that the update determines.
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
