//! The table of the sampled values and of the charts that show them.

/// A chart: lines over the same period.
pub struct Chart {
    /// The name in addresses and scripts.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The lines.
    pub lines: &'static [Line],
}

/// A line of a chart.
pub struct Line {
    /// The name in the legend.
    pub name: &'static str,
    /// The source of its values.
    pub source: Source,
}

/// The unit of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count.
    Count,
    /// A count per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Milliseconds.
    Milliseconds,
}

/// The source of a value in `serverStatus`.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The value at a path.
    Now(&'static [&'static str]),
    /// The value at a path, divided by a factor.
    Scaled(&'static [&'static str], f64),
    /// The increase per second of the value at a path.
    Rate(&'static [&'static str]),
    /// The increase per second of the sum of two values, divided by a factor.
    RateOfSum([&'static [&'static str]; 2], f64),
    /// A percentile of the latencies of a class of operations; the fraction is between 0 and 1.
    Latency(&'static str, f64),
}

impl Unit {
    /// Returns the name that the scripts use.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::PerSecond => "per-second",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes-per-second",
            Unit::Milliseconds => "milliseconds",
        }
    }
}

const fn line(name: &'static str, source: Source) -> Line {
    Line { name, source }
}

/// All charts, in the order of the page. The columns of a sample are their lines in this order.
pub const CHARTS: &[Chart] = &[
    Chart {
        name: "operations",
        title: "Operations per second",
        unit: Unit::PerSecond,
        lines: &[
            line("insert", Source::Rate(&["opcounters", "insert"])),
            line("query", Source::Rate(&["opcounters", "query"])),
            line("update", Source::Rate(&["opcounters", "update"])),
            line("delete", Source::Rate(&["opcounters", "delete"])),
            line("getMore", Source::Rate(&["opcounters", "getmore"])),
            line("command", Source::Rate(&["opcounters", "command"])),
        ],
    },
    Chart {
        name: "latency",
        title: "Latency",
        unit: Unit::Milliseconds,
        lines: &[
            line("reads, median", Source::Latency("reads", 0.5)),
            line("reads, 99%", Source::Latency("reads", 0.99)),
            line("writes, median", Source::Latency("writes", 0.5)),
            line("writes, 99%", Source::Latency("writes", 0.99)),
            line("commands, median", Source::Latency("commands", 0.5)),
            line("commands, 99%", Source::Latency("commands", 0.99)),
        ],
    },
    Chart {
        name: "memory",
        title: "Memory",
        unit: Unit::Bytes,
        lines: &[
            line("process", Source::Scaled(&["mem", "resident"], 1_048_576.0)),
            line("block cache", Source::Now(&["windrow", "memory", "cache"])),
            line("tails", Source::Now(&["windrow", "memory", "tails"])),
            line("budget", Source::Now(&["windrow", "memory", "limit"])),
        ],
    },
    Chart {
        name: "background",
        title: "Folds and merges per second",
        unit: Unit::PerSecond,
        lines: &[
            line("folds", Source::Rate(&["windrow", "folds"])),
            line("merges", Source::Rate(&["windrow", "merges"])),
            line(
                "delayed writes",
                Source::Rate(&["windrow", "delayedWrites"]),
            ),
        ],
    },
    Chart {
        name: "disk",
        title: "Data on disk",
        unit: Unit::Bytes,
        lines: &[line("data", Source::Now(&["windrow", "disk", "data"]))],
    },
    Chart {
        name: "connections",
        title: "Connections",
        unit: Unit::Count,
        lines: &[
            line("open", Source::Now(&["connections", "current"])),
            line("active", Source::Now(&["connections", "active"])),
        ],
    },
    Chart {
        name: "network",
        title: "Network",
        unit: Unit::BytesPerSecond,
        lines: &[
            line("received", Source::Rate(&["network", "bytesIn"])),
            line("sent", Source::Rate(&["network", "bytesOut"])),
        ],
    },
    Chart {
        name: "processor",
        title: "Processor cores in use",
        unit: Unit::Count,
        lines: &[line(
            "cores",
            Source::RateOfSum(
                [
                    &["extra_info", "user_time_us"],
                    &["extra_info", "system_time_us"],
                ],
                1e-6,
            ),
        )],
    },
];

/// Returns all lines, in the order of the columns of a sample.
pub fn lines() -> impl Iterator<Item = &'static Line> {
    CHARTS.iter().flat_map(|chart| chart.lines)
}
