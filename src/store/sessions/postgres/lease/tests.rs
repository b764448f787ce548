//! Leases, case by case; `lives` has many orders of events.

mod lives;

use super::{Claim, Lease, Settlement, claim, settle};

#[test]
fn a_lease_is_had_by_one() {
    let lease = |owner: Option<&str>| Lease { epoch: 7, owner: owner.map(str::to_owned), len: 10 };
    let cases = [
        (None, false, false, Claim::Take),
        (Some("other"), true, false, Claim::Refuse),
        (Some("other"), false, false, Claim::Take),
        (Some("me"), true, true, Claim::Refuse),
        (Some("me"), true, false, Claim::Take),
    ];
    for (owner, is_heard, is_open_here, expected) in cases {
        assert_eq!(claim(&lease(owner), "me", is_heard, is_open_here), expected, "{owner:?} {is_heard}");
    }
    let cases = [
        (7, 10, 5, Settlement::Again),
        (7, 5, 5, Settlement::Stored),
        (7, 4, 5, Settlement::Broken),
        (7, 12, 5, Settlement::Broken),
        (6, 10, 5, Settlement::Lost),
        (6, 5, 5, Settlement::Lost),
    ];
    for (epoch, start, added, expected) in cases {
        assert_eq!(settle(&lease(None), epoch, start, added), expected, "{epoch} {start}");
    }
}
