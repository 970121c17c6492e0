//! Durations of operations: sums, and histograms with MongoDB's ranges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

/// The class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClass {
    Read,
    Write,
    Command,
    Transaction,
}

/// The names of the classes, in their order.
pub const NAMES: [&str; CLASSES] = ["reads", "writes", "commands", "transactions"];
/// The number of classes.
pub const CLASSES: usize = 4;

/// The lower bounds of a histogram in microseconds. They double, with one more bound in each range
/// between 2 ms and 2 s.
const LOWER_BOUNDS: [u64; 51] = [
    0,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
    256,
    512,
    1_024,
    2_048,
    3_072,
    4_096,
    6_144,
    8_192,
    12_288,
    16_384,
    24_576,
    32_768,
    49_152,
    65_536,
    98_304,
    131_072,
    196_608,
    262_144,
    393_216,
    524_288,
    786_432,
    1_048_576,
    1_572_864,
    2_097_152,
    4_194_304,
    8_388_608,
    16_777_216,
    33_554_432,
    67_108_864,
    134_217_728,
    268_435_456,
    536_870_912,
    1_073_741_824,
    2_147_483_648,
    4_294_967_296,
    8_589_934_592,
    17_179_869_184,
    34_359_738_368,
    68_719_476_736,
    137_438_953_472,
    274_877_906_944,
    549_755_813_888,
    1_099_511_627_776,
];

/// The bounds of [`Latency::cumulative`] in microseconds.
const CUMULATIVE_MIN: u64 = 64;
const CUMULATIVE_MAX: u64 = 1 << 26;

fn bucket(micros: u64) -> usize {
    LOWER_BOUNDS.partition_point(|bound| *bound <= micros) - 1
}

/// The durations of all operations of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    micros: u64,
    count: u64,
    /// By index of the range.
    buckets: BTreeMap<usize, u64>,
}

impl Latency {
    pub fn add(&mut self, took: Duration) {
        let micros = took.as_micros() as u64;
        self.micros += micros;
        self.count += 1;
        *self.buckets.entry(bucket(micros)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Latency) {
        self.micros += other.micros;
        self.count += other.count;
        for (place, count) in &other.buckets {
            *self.buckets.entry(*place).or_default() += count;
        }
    }

    /// Returns the number of operations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of their durations in seconds.
    pub fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros).as_secs_f64()
    }

    /// Returns pairs of a duration in microseconds and the number of operations that took less. The
    /// durations double from 64 µs to 67 s.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let bounds = LOWER_BOUNDS.iter().enumerate();
        let powers = bounds.filter(|(_, bound)| {
            bound.is_power_of_two() && (CUMULATIVE_MIN..=CUMULATIVE_MAX).contains(*bound)
        });
        powers.map(|(place, bound)| {
            (
                *bound,
                self.buckets.range(..place).map(|(_, count)| count).sum(),
            )
        })
    }

    fn describe(&self, histogram: bool) -> DocumentBuf {
        let mut described = DocumentBuf::new();
        if histogram {
            let ranges = self.buckets.iter().filter_map(|(place, count)| {
                let bound = LOWER_BOUNDS.get(*place)?;
                Some(Value::from(
                    doc! { "micros": (*bound as i64), "count": (*count as i64) },
                ))
            });
            described.push("histogram", Value::from(ranges.collect::<ArrayBuf>()));
        }
        described.push("latency", self.micros as i64);
        described.push("ops", self.count as i64);
        described
    }
}

/// Latencies by class.
pub type Latencies = [Latency; CLASSES];

/// Returns the latencies of each class by name.
pub fn describe(latencies: &Latencies, histograms: bool) -> DocumentBuf {
    let mut described = DocumentBuf::new();
    for (name, latency) in NAMES.iter().zip(latencies) {
        described.push(name, latency.describe(histograms));
    }
    described
}

/// Latencies that all threads add to.
#[derive(Debug)]
pub struct AtomicLatency {
    micros: AtomicU64,
    buckets: [AtomicU64; LOWER_BOUNDS.len()],
}

impl Default for AtomicLatency {
    fn default() -> AtomicLatency {
        AtomicLatency {
            micros: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; LOWER_BOUNDS.len()],
        }
    }
}

impl AtomicLatency {
    pub fn add(&self, took: Duration) {
        let micros = took.as_micros() as u64;
        self.micros.fetch_add(micros, Relaxed);
        if let Some(count) = self.buckets.get(bucket(micros)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub fn load(&self) -> Latency {
        let counts = self.buckets.iter().map(|count| count.load(Relaxed));
        let buckets: BTreeMap<usize, u64> =
            counts.enumerate().filter(|(_, count)| *count > 0).collect();
        Latency {
            micros: self.micros.load(Relaxed),
            count: buckets.values().sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_ranges_are_those_of_mongodb() {
        let check = |micros: u64, bound: u64| {
            assert_eq!(LOWER_BOUNDS[bucket(micros)], bound, "{micros}");
        };
        check(0, 0);
        check(1, 0);
        check(2, 2);
        check(1_023, 512);
        check(2_048, 2_048);
        check(3_071, 2_048);
        check(3_072, 3_072);
        check(1_572_864, 1_572_864);
        check(2_097_152, 2_097_152);
        check(3_500_000, 2_097_152);
        check(u64::MAX, 1_099_511_627_776);
        assert!(LOWER_BOUNDS.is_sorted());
    }

    #[test]
    fn atomic_and_plain_sums_are_equal() {
        let (shared, mut own) = (AtomicLatency::default(), Latency::default());
        for micros in [1, 1, 5, 100_000] {
            shared.add(Duration::from_micros(micros));
            own.add(Duration::from_micros(micros));
        }
        assert_eq!(shared.load(), own);
        let expected = doc! {
            "histogram": [
                { "micros": 0i64, "count": 2i64 }, { "micros": 4i64, "count": 1i64 },
                { "micros": 98_304i64, "count": 1i64 },
            ],
            "latency": 100_007i64, "ops": 4i64,
        };
        assert_eq!(own.describe(true), expected);
        let cumulative: Vec<(u64, u64)> = own.cumulative().collect();
        assert_eq!(cumulative.first(), Some(&(64, 3)));
        assert!(cumulative.contains(&(65_536, 3)) && cumulative.contains(&(131_072, 4)));
        assert_eq!(cumulative.last(), Some(&(67_108_864, 4)));
        own.merge(&shared.load());
        assert_eq!(
            own.describe(false),
            doc! { "latency": 200_014i64, "ops": 8i64 }
        );
    }
}
