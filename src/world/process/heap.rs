//! The heap of this process: its free parts go back to the system.

/// The allocator keeps free pieces between those in use, after a crowd of sessions more than half of the heap. Takes
/// milliseconds for each 10 MB, in which nothing is allocated: for a quiet moment.
pub fn release_free_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number only, and may be called at any time from any thread.
    let _ = unsafe { nix::libc::malloc_trim(0) };
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    const PIECE: usize = 4 << 10;
    const N_PIECES: usize = 32 << 10;

    /// In bytes, in memory now.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[test]
    fn free_pieces_between_others_are_given_back() {
        let mut pieces: Vec<Option<Vec<u8>>> = (0..N_PIECES).map(|_| Some(vec![1; PIECE])).collect();
        // What stays lies between what goes.
        pieces.iter_mut().enumerate().filter(|(at, _)| at % 16 != 0).for_each(|(_, it)| *it = None);
        let before = resident();
        super::release_free_heap();
        let after = resident();
        assert!(after + N_PIECES * PIECE / 2 < before, "{before} bytes, then {after}");
        assert!(pieces.iter().flatten().all(|it| it.iter().all(|it| *it == 1)));
    }
}
