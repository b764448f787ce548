//! Faults that tests inject at each step that writes to a disk.

use std::{cell::RefCell, io};

/// What is to happen at a step.
pub enum Plan {
    None,
    /// Ends this thread at the step with this number, as a kill would.
    Die(usize),
    /// From the step with this number on, the disk takes nothing; after so many refusals it does again.
    Full(usize, usize),
    /// Runs something at each step of this name.
    Run(&'static str, Box<dyn FnMut()>),
}

thread_local! {
    static STATE: RefCell<(Plan, usize)> = const { RefCell::new((Plan::None, 0)) };
}

pub fn set(plan: Plan) {
    STATE.with(|it| *it.borrow_mut() = (plan, 0));
}

pub fn take() -> Plan {
    STATE.with(|it| std::mem::replace(&mut it.borrow_mut().0, Plan::None))
}

pub fn step(name: &'static str) -> io::Result<()> {
    STATE.with(|it| {
        let state = &mut *it.borrow_mut();
        state.1 += 1;
        match &mut state.0 {
            Plan::Die(n) if *n == state.1 => {
                state.0 = Plan::None;
                std::panic::panic_any("killed");
            }
            Plan::Full(n, times) if state.1 >= *n && *times > 0 => {
                *times -= 1;
                Err(rustix::io::Errno::NOSPC.into())
            }
            Plan::Run(at, run) if *at == name => {
                run();
                Ok(())
            }
            _ => Ok(()),
        }
    })
}
