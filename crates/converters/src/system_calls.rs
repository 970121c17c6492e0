//! The system calls that a converter must not make: a seccomp filter.
//!
//! Converters are arbitrary programs, so the filter is a deny list. It refuses the calls that reach
//! beyond the process group and its files: sockets, other processes, mounts, namespaces, and kernel
//! interfaces with a large attack surface.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// These calls fail with `EPERM`.
const REFUSED: &[libc::c_long] = &[
    // Sockets. `socketpair` is allowed, because it connects only related processes.
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes, and calls that leave the process group, which is killed at the deadline.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Access to files without their paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// On x86-64, each call has a second number, for the x32 ABI.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

/// Applies the filter to this thread and to its descendants.
///
/// # Errors
/// Fails with a message if the kernel or the processor architecture is not supported.
pub(crate) fn refuse() -> Result<(), String> {
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(describe)?;
    for filter in [build_refused(target), build_clone3(target)] {
        seccompiler::apply_filter(&filter.map_err(describe)?).map_err(describe)?;
    }
    Ok(())
}

fn describe(error: impl std::fmt::Display) -> String {
    format!("seccomp: {error}")
}

fn build_refused(target: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for &call in REFUSED {
        rules.insert(call, Vec::new());
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, Vec::new());
    }
    // A process has all capabilities in a new user namespace.
    let flag = libc::CLONE_NEWUSER as u64;
    let condition = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(flag),
        flag,
    )?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![condition])?]);
    let permission = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, permission, target)?;
    Ok(filter.try_into()?)
}

/// Refuses `clone3` with `ENOSYS`, so that libraries fall back to `clone`. The flags of `clone3`
/// are in memory, which a filter cannot read.
fn build_clone3(target: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, absent, target)?;
    Ok(filter.try_into()?)
}
