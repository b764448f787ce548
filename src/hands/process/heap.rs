//! The heap of this process: its free parts go back to the system.

/// The allocator keeps free pieces between those in use, after a crowd of sessions more than half of the heap. Takes
/// milliseconds for each 10 MB, in which nothing is allocated: for a quiet moment.
pub fn release_free_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a number only, and may be called at any time from any thread.
    let _ = unsafe { nix::libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    /// In bytes, in memory now.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn free_pieces_between_others_are_given_back() {
        let (piece, n_pieces) = (4 << 10, 32 << 10);
        let mut pieces: Vec<Option<Vec<u8>>> = (0..n_pieces).map(|_| Some(vec![1; piece])).collect();
        // What stays lies between what goes.
        pieces.iter_mut().enumerate().filter(|(at, _)| at % 16 != 0).for_each(|(_, it)| *it = None);
        let before = resident();
        super::release_free_heap();
        let after = resident();
        assert!(after + n_pieces * piece / 2 < before, "{before} bytes, then {after}");
        assert!(pieces.iter().flatten().all(|it| it.iter().all(|it| *it == 1)));
    }
}
