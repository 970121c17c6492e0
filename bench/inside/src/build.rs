//! What happens inside a text index's build, on the bodies on standard input, one a line: how long
//! each phase takes, where the time goes (a flame graph), and how long terms take in other maps
//! than the one that is used. Arguments: a folder for data, the flame graph's path. Prints a name
//! and a number a line.

mod load;
mod maps;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use windrow_collection::{BuildControl, BuildPhase, Engine, EngineOptions, Namespace, Uninterrupted};
use windrow_document::{Document, doc};
use windrow_index::Definition;
use windrow_storage::RealDisk;

use load::Failure;

const MEMORY: u64 = 1 << 30;
const SAMPLES_PER_SECOND: i32 = 997;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, flames] = arguments.as_slice() else {
        return Err("arguments: a folder, the path of the flame graph".into());
    };
    let bodies = load::bodies()?;
    for (name, seconds) in build(folder.as_ref(), flames.as_ref(), &bodies)? {
        println!("phase_{name} {seconds:.6}");
    }
    for (name, count) in maps::ALL {
        let begin = Instant::now();
        let terms = count(&bodies);
        println!("map_{name} {:.6}", begin.elapsed().as_secs_f64());
        println!("terms_{name} {terms}");
    }
    Ok(())
}

/// Seconds by phase.
fn build(
    folder: &Path,
    flames: &Path,
    bodies: &[String],
) -> Result<BTreeMap<&'static str, f64>, Failure> {
    let disk = RealDisk::new(folder)?;
    let engine = Engine::open(Arc::new(disk), EngineOptions::with_memory(MEMORY))?;
    let collection = engine.create(&Namespace::new("w1", "documents")?, Document::EMPTY)?;
    load::insert(&collection, bodies)?;
    engine.fold()?;
    let specification = doc! { "key": { "body": "text" }, "name": "body_text" };
    let definition = Definition::parse(specification.as_document())
        .map_err(|error| format!("the index's definition: {error:?}"))?;
    let (begin, phases) = (Instant::now(), Mutex::new(BTreeMap::new()));
    let on_phase = |phase: &BuildPhase| {
        let (name, seconds) = match phase {
            BuildPhase::Registered { .. } => ("register", begin.elapsed().as_secs_f64()),
            BuildPhase::Scanned { seconds, .. } => ("scan_sort_write", *seconds),
            BuildPhase::Checked { seconds } => ("check", *seconds),
            BuildPhase::Ready { seconds } => ("all", *seconds),
        };
        if let Ok(mut phases) = phases.lock() {
            phases.insert(name, seconds);
        }
    };
    let control = BuildControl {
        interrupt: &Uninterrupted,
        on_phase: &on_phase,
    };
    let sampler = pprof::ProfilerGuard::new(SAMPLES_PER_SECOND)?;
    collection.create_indexes(vec![definition], &control)?;
    let report = sampler.report().build()?;
    drop(sampler);
    report.flamegraph(std::fs::File::create(flames)?)?;
    engine.close()?;
    Ok(phases.into_inner().unwrap_or_default())
}
