//! Profiles a build: `bench/inside` builds an index in its own process and samples it.

use super::bodies::Bodies;
use crate::calibration::write_bodies;
use crate::error::BenchError;
use crate::options::Options;
use crate::rival::{self, RivalFolder};

/// The name of the flame graph's file.
pub const FLAMES: &str = "w1-flames.svg";

/// Phases and other parts with their seconds. Empty if the profiler is not compiled.
#[derive(Default)]
pub struct InProcessFigures {
    pub phases: Vec<(String, f64)>,
    pub maps: Vec<(String, f64)>,
}

impl InProcessFigures {
    pub fn all(&self) -> impl Iterator<Item = &(String, f64)> {
        self.phases.iter().chain(&self.maps)
    }
}

pub fn measure(options: &Options, bodies: &Bodies) -> Result<InProcessFigures, BenchError> {
    let folder = RivalFolder::create(options)?;
    let flames = options.rivals.join(FLAMES).display().to_string();
    let arguments = [folder.argument(), flames];
    let figures = rival::run(options, "inside", &arguments, |input| {
        write_bodies(input, bodies.documents, bodies.body)
    })?;
    let Some(figures) = figures else {
        return Ok(InProcessFigures::default());
    };
    let named = |prefix: &str, title: &str| {
        let found = figures.beginning(prefix);
        found
            .map(|(name, seconds)| (format!("{title}{}", name.replace('_', " ")), seconds))
            .collect()
    };
    Ok(InProcessFigures {
        phases: named("phase_", "phase: "),
        maps: named("map_", "map of terms: "),
    })
}
