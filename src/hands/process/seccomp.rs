//! Filters of system calls in rows: of the one that refuses calls, and of the one that tells of them.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};

/// Calls by their numbers, each with the rules of which one has to hold; without rules the filter finds every such call.
pub type CallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// On x86-64 every call has a second number, from this one on, which hardly a kernel knows and no program uses.
pub const X32: libc::c_uint = 0x4000_0000;
/// How many calls stand in a row of the filter.
const ROW: usize = 8;
/// Where a filter finds the number of the call.
const NUMBER: libc::c_uint = 0;

/// Calls that are not there at all: the beginning of each filter, as what comes behind it refuses or tells, and gives nothing.
const UNKNOWN: [sock_filter; 4] = [
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER, (0, 0)),
    step(libc::BPF_JMP | libc::BPF_JGE, X32, (1, 0)),
    // Its flags are in memory, where a filter cannot look; without the call, libraries take `clone`.
    step(libc::BPF_JMP | libc::BPF_JEQ, libc::SYS_clone3 as u32, (0, 1)),
    step(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, (0, 0)),
];

/// The last part: steps to pass over where it holds, and where not.
const fn step(code: libc::c_uint, k: libc::c_uint, (jt, jf): (u8, u8)) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// One filter in rows, of which one is tried: when it is set, the kernel tries it with every number there is.
pub fn compile(mut rules: CallRules, found: SeccompAction) -> Result<BpfProgram, BackendError> {
    let row = |rules| -> Result<BpfProgram, BackendError> {
        let arch = std::env::consts::ARCH.try_into()?;
        SeccompFilter::new(rules, SeccompAction::Allow, found.clone(), arch)?.try_into()
    };
    let mut res = UNKNOWN.to_vec();
    while let Some(next) = rules.keys().nth(ROW).copied() {
        let later = rules.split_off(&next);
        let row = row(std::mem::replace(&mut rules, later))?;
        // The number was loaded before: this one and later ones pass over the row.
        res.push(step(libc::BPF_JMP | libc::BPF_JGE, next as u32, (0, 1)));
        res.push(step(libc::BPF_JMP | libc::BPF_JA, row.len() as u32, (0, 0)));
        res.extend(row);
    }
    res.extend(row(rules)?);
    Ok(res)
}

/// All conditions hold of the lower halves of these arguments.
pub fn when(conditions: &[(u8, Op, u64)]) -> Result<SeccompRule, BackendError> {
    let all = conditions.iter().map(|(at, op, value)| SeccompCondition::new(*at, Len::Dword, op.clone(), *value));
    SeccompRule::new(all.collect::<Result<_, _>>()?)
}

/// Any of these bits is set in an argument.
pub fn when_any_bit(argument: u8, mask: u64) -> Result<Vec<SeccompRule>, BackendError> {
    let bits = (0..64).map(|it| 1 << it).filter(|it| mask & it != 0);
    bits.map(|it| when(&[(argument, Op::MaskedEq(it), it)])).collect()
}
