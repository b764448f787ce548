//! The seccomp filter: system calls that are denied to confined processes.

use nix::libc;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompCmpOp as Op, SeccompRule};

use super::{SetupError, failed};
use crate::process::{
    sandbox::SandboxPlan,
    seccomp::{CallRules, compile, when, when_any_bit},
};

/// Other processes, keys, the kernel itself, and mounts that would undo ours.
const NEVER: &[libc::c_long] = &[
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];
/// Into other processes: with numbers of its own a sandbox has none but its own, of which the first is closed to them.
const INTO_OTHERS: &[libc::c_long] = &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];
/// Shared between all processes of the machine, where there is no namespace of its own for it.
const SHARED: &[libc::c_long] = &[libc::SYS_shmget, libc::SYS_msgget, libc::SYS_semget, libc::SYS_mq_open];
/// Of other processes too, where all can be named: a number other than 0, which is the caller, in this argument.
const OF_OTHERS: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];
/// `setpriority` and `ioprio_set` also take a user; 0 means the caller's.
const OF_USERS: &[(libc::c_long, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
const NEW_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;
/// The version of Landlock that keeps a process from sockets without a file.
const SCOPES: i64 = 6;

pub(super) fn restrict(plan: &SandboxPlan) -> Result<(), SetupError> {
    let program = program(plan).map_err(failed("seccomp"))?;
    seccompiler::apply_filter(&program).map_err(failed("seccomp"))
}

/// The whole filter, as the kernel runs it.
fn program(plan: &SandboxPlan) -> Result<BpfProgram, BackendError> {
    let mut rules: CallRules = NEVER.iter().map(|it| (*it, Vec::new())).collect();
    rules.insert(libc::SYS_socket, vec![sockets(plan)?]);
    if !opens_unix(plan) {
        rules.insert(libc::SYS_socketpair, unconnected_pairs()?);
    }
    if !plan.namespaces {
        rules.extend(SHARED.iter().chain(INTO_OTHERS).map(|it| (*it, Vec::new())));
        for (call, argument) in OF_OTHERS {
            rules.entry(*call).or_default().push(when(&[(*argument, Op::Ne, 0)])?);
        }
        for (call, user) in OF_USERS {
            rules.entry(*call).or_default().push(when(&[(0, Op::Eq, *user)])?);
        }
    }
    rules.insert(libc::SYS_clone, when_any_bit(0, NEW_NAMESPACES)?);
    // Typing into somebody's terminal.
    rules.insert(libc::SYS_ioctl, vec![when(&[(1, Op::Eq, libc::TIOCSTI)])?, when(&[(1, Op::Eq, libc::TIOCLINUX)])?]);
    compile(rules, SeccompAction::Errno(libc::EPERM as u32))
}

/// Families that a process may open sockets of. AF_UNIX, whose sockets are doors to containers, agents and desktop, only
/// where those of others are hidden; pairs of them stay, since they lead nowhere.
fn sockets(plan: &SandboxPlan) -> Result<SeccompRule, BackendError> {
    // In a network of its own there is nobody but itself.
    let families: &[libc::c_int] = match plan.network.is_whole || plan.namespaces {
        true => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        false => &[],
    };
    let unix = opens_unix(plan).then_some(libc::AF_UNIX);
    let other: Vec<_> = families.iter().chain(&unix).map(|it| (0, Op::Ne, *it as u64)).collect();
    match other.as_slice() {
        [] => when(&[(0, Op::Ge, 0)]),
        it => when(it),
    }
}

/// All sockets are hidden but its session's and those that were given, and Landlock or a network of its own holds those
/// without a file.
fn opens_unix(plan: &SandboxPlan) -> bool {
    plan.hides_sockets() && (!plan.network.is_whole || super::rules::abi() >= SCOPES)
}

/// Pairs of datagrams: each end can be pointed at any socket later, by `connect` or `sendto`. To the kernel raw ones are
/// the same.
fn unconnected_pairs() -> Result<Vec<SeccompRule>, BackendError> {
    const KIND: u64 = 0xf;
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].into_iter();
    kinds.map(|it| when(&[(1, Op::MaskedEq(KIND), it as u64)])).collect()
}

#[cfg(test)]
mod tests {
    use nix::libc;
    use seccompiler::sock_filter;

    use super::{NEVER, program};
    use crate::process::{
        sandbox::{PlannedNetwork, SandboxPlan},
        seccomp::X32,
    };

    #[cfg(target_arch = "x86_64")]
    const ARCH: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCH: u32 = 0xc000_00b7;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    /// What a filter says to a call, evaluated as the kernel does it: this one may lack the calls in question.
    fn verdict(filter: &[sock_filter], number: u32, args: &[u64]) -> u32 {
        let mut data = [0_u32; 16];
        (data[0], data[1]) = (number, ARCH);
        for (at, it) in args.iter().enumerate() {
            (data[4 + 2 * at], data[5 + 2 * at]) = (*it as u32, (*it >> 32) as u32);
        }
        let (mut at, mut value) = (0, 0);
        loop {
            let it = &filter[at];
            let code = u32::from(it.code);
            let jump = |is: bool| usize::from(if is { it.jt } else { it.jf });
            at += 1;
            const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
            match (code & 7, code & 0xf0) {
                (libc::BPF_LD, _) if code == LOAD => value = data[it.k as usize / 4],
                (libc::BPF_ALU, libc::BPF_AND) => value &= it.k,
                (libc::BPF_JMP, libc::BPF_JA) => at += it.k as usize,
                (libc::BPF_JMP, libc::BPF_JEQ) => at += jump(value == it.k),
                (libc::BPF_JMP, libc::BPF_JGE) => at += jump(value >= it.k),
                (libc::BPF_JMP, libc::BPF_JGT) => at += jump(value > it.k),
                (libc::BPF_RET, _) => return it.k,
                _ => panic!("code {code:#x} at {at}"),
            }
        }
    }

    fn errno(it: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | it as u32
    }

    /// x32 gives system calls a second number.
    #[test]
    fn second_numbers_of_calls_are_refused_too() {
        for namespaces in [true, false] {
            let filter =
                program(&SandboxPlan { namespaces, network: PlannedNetwork::WHOLE, ..SandboxPlan::default() }).unwrap();
            let says = |number: libc::c_long, args: &[u64]| verdict(&filter, number as u32, args);
            assert_eq!(says(libc::SYS_getpid, &[]), ALLOW);
            for it in [libc::SYS_getpid, libc::SYS_bpf, libc::SYS_mount, libc::SYS_socket, libc::SYS_openat] {
                assert_eq!(says(it | libc::c_long::from(X32), &[]), errno(libc::ENOSYS), "{it}");
            }
            // Those that only this second table has: `execve`, `ptrace`, `process_vm_writev` and others.
            for it in 512..548 {
                assert_eq!(verdict(&filter, X32 + it, &[]), errno(libc::ENOSYS), "{it}");
            }
            assert_eq!(verdict(&filter, u32::MAX, &[]), errno(libc::ENOSYS));
            assert_eq!(says(libc::SYS_clone3, &[]), errno(libc::ENOSYS));
            let want = if namespaces { ALLOW } else { errno(libc::EPERM) };
            assert_eq!(says(libc::SYS_ptrace, &[]), want);
            let socket = |family: i32| says(libc::SYS_socket, &[family as u64]);
            assert_eq!((socket(libc::AF_UNIX), socket(libc::AF_INET)), (errno(libc::EPERM), ALLOW));
        }
    }

    /// Whichever row a call stands in, and those between them.
    #[test]
    fn each_call_is_refused_that_is_to_be_and_no_other() {
        let filter =
            program(&SandboxPlan { namespaces: true, network: PlannedNetwork::WHOLE, ..SandboxPlan::default() })
                .unwrap();
        let steps = filter.len();
        for number in (0..500).filter(|it| *it != libc::SYS_clone3) {
            let want = if NEVER.contains(&number) { errno(libc::EPERM) } else { ALLOW };
            // A family, a kind and flags that are allowed.
            assert_eq!(verdict(&filter, number as u32, &[libc::AF_INET as u64, 1, 0]), want, "{number} of {steps}");
        }
    }
}
