//! Settings of the C library's allocator that save memory.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variable that limits the number of arenas of glibc's malloc. Variables are read at the start
/// of a process.
const ARENAS_VARIABLE: &str = "MALLOC_ARENA_MAX";
/// The variable with the size from which a block has a mapping of its own, in bytes.
const MAPPED_VARIABLE: &str = "MALLOC_MMAP_THRESHOLD_";
/// The variable with the number of free bytes at the end of the heap above which they are returned.
const TRIM_VARIABLE: &str = "MALLOC_TRIM_THRESHOLD_";

/// The heap is trimmed from this many free bytes on. If the size of mapped blocks is set, the
/// default is so small that the heap would grow and shrink all the time.
const TRIM_BYTES: usize = 32 << 20;

/// Settings of the allocator.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorSettings {
    /// The maximum number of arenas. By default there are eight per core. Each retains free memory
    /// between used blocks, and memory that other threads free.
    pub arenas: usize,
    /// Blocks of this many bytes have a mapping of their own, which is returned when they are
    /// freed. `None` for glibc's default, which grows with the sizes of freed blocks to 32 MiB.
    /// Freed blocks then leave gaps in the heap that other sizes do not fill.
    pub mapped_bytes_min: Option<usize>,
}

impl AllocatorSettings {
    /// Restarts the program in the same process with these settings. Does nothing if the number of
    /// arenas is set already. An error is ignored, because the settings only save memory.
    pub fn apply(self) {
        if cfg!(not(target_env = "gnu")) || std::env::var_os(ARENAS_VARIABLE).is_some() {
            return;
        }
        let Ok(program) = std::env::current_exe() else {
            return;
        };
        let mut arguments = std::env::args_os();
        let mut command = Command::new(program);
        command.env(ARENAS_VARIABLE, self.arenas.to_string());
        if let Some(bytes) = self.mapped_bytes_min {
            command.env(MAPPED_VARIABLE, bytes.to_string());
            command.env(TRIM_VARIABLE, TRIM_BYTES.to_string());
        }
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        // Returns only if it fails.
        let _ = command.args(arguments).exec();
    }
}
