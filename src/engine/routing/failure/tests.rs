//! Reactions to failures as a table: `case => decision`.

use super::{AttemptCounts, FailureAction, FailureCase, RetryPatience, on_failure, outage, outage_by_policy};
use crate::routing::{
    failure_class::PolicyKind,
    fallback_policies::{FallbackAction, FallbackPolicy, OutageTransition},
};
use castor_base::{
    clock::Now,
    fallback::{Outage, OutageCause},
    model::{Details, Failure, FailureKind},
};

const NOW: Now = Now { unix_ms: 1_000_000, seed: 7 };

fn status(status: u16, message: &str, retry_after_ms: Option<u64>) -> Failure {
    Failure { status: Some(status), retry_after_ms, ..Failure::new(FailureKind::Status, message) }
}

/// The case after `attempt` failures of this kind, with nobody to take over or to ask.
fn case(failure: &Failure, attempt: u32) -> FailureCase<'static> {
    let mut tries = AttemptCounts::default();
    (0..attempt.min(1_000)).for_each(|_| tries.count(failure));
    FailureCase {
        model: "m",
        tries,
        single_attempt: false,
        answer_shown: false,
        fallback: None,
        policy: FallbackPolicy::always(FallbackAction::Ask),
        interactive: true,
        can_renew: false,
        is_long: true,
        patience: RetryPatience::default(),
        now: NOW,
    }
}

/// The wait in milliseconds; `None`: no further attempt.
fn wait(failure: &Failure, case: FailureCase<'_>) -> Option<u64> {
    match on_failure(failure, case) {
        FailureAction::RetryAt { at_ms, .. } => Some(at_ms - NOW.unix_ms),
        _ => None,
    }
}

#[test]
fn waits_where_the_server_names_none() {
    let connect = Failure::new(FailureKind::Connect, "refused");
    let stream = Failure::new(FailureKind::Stream, "broke");
    let invalid = Failure::new(FailureKind::Invalid, "empty");
    let overloaded = status(503, "overloaded", None);
    let no_room = status(429, "You have exhausted your capacity on this model.", None);
    let table: &[(&Failure, u32, Option<u64>)] = &[
        (&connect, 1, Some(1_000)),
        (&connect, 2, Some(2_000)),
        (&connect, 3, Some(4_000)),
        (&connect, 4, None),
        (&stream, 1, Some(1_000)),
        (&stream, 3, Some(4_000)),
        (&stream, 4, None),
        (&invalid, 2, Some(2_000)),
        (&invalid, 4, None),
        (&overloaded, 1, Some(5_000)),
        (&overloaded, 2, Some(10_000)),
        (&overloaded, 3, Some(20_000)),
        (&overloaded, 4, Some(30_000)),
        (&overloaded, 9, Some(30_000)),
        (&overloaded, 10, None),
        (&overloaded, u32::MAX, None),
        (&no_room, 1, Some(1_000)),
        (&no_room, 2, Some(3_000)),
        (&no_room, 3, Some(20_000)),
        (&no_room, 10, None),
    ];
    for (failure, attempt, expected) in table {
        for seed in 0..200 {
            let got = wait(failure, FailureCase { now: Now { seed, ..NOW }, ..case(failure, *attempt) });
            assert_eq!(got.is_some(), expected.is_some(), "{failure:?} {attempt}");
            let (got, middle) = (got.unwrap_or_default(), expected.unwrap_or_default());
            assert!((middle * 7 / 10..=middle * 13 / 10).contains(&got), "{failure:?} {attempt}: {got}");
        }
    }
    let jitter = |seed| wait(&connect, FailureCase { now: Now { seed, ..NOW }, ..case(&connect, 1) });
    let waits: std::collections::BTreeSet<_> = (0..50).map(jitter).collect();
    assert!(waits.len() > 30, "{waits:?}");
}

/// The wait is the server's, to the millisecond.
#[test]
fn server_delay_is_waited_exactly() {
    for ms in [0, 1, 900, 34_070, 300_000] {
        let failure = status(429, "slow down", Some(ms));
        assert_eq!(wait(&failure, case(&failure, 3)), Some(ms));
        let failure = status(500, "oops", Some(ms));
        assert_eq!(wait(&failure, case(&failure, 1)), Some(ms));
    }
    for code in [429, 500] {
        let failure = status(code, "slow down", Some(300_001));
        assert_eq!(wait(&failure, case(&failure, 1)), None);
    }
}

#[test]
fn retried_or_not() {
    let of = |kind| Failure::new(kind, "m");
    let table = [
        (status(408, "", None), true),
        (status(429, "", None), true),
        (status(499, "", None), true),
        (status(500, "", None), true),
        (status(529, "", None), true),
        (status(400, "", None), false),
        (status(402, "", None), false),
        (status(404, "", None), false),
        (status(413, "", None), false),
        (status(307, "", None), false),
        (status(429, "Quota exceeded, limit: 0", None), false),
        (of(FailureKind::Connect), true),
        (of(FailureKind::Stream), true),
        (of(FailureKind::Invalid), true),
        (of(FailureKind::Status), true),
        (of(FailureKind::Auth), false),
        (of(FailureKind::Script), false),
        (of(FailureKind::Garbage), false),
        (of(FailureKind::Panicked), false),
    ];
    for (failure, retried) in table {
        for shown in [false, true] {
            let case = FailureCase { answer_shown: shown, ..case(&failure, 1) };
            assert_eq!(wait(&failure, case).is_some(), retried, "{failure:?}, shown: {shown}");
        }
    }
}

#[test]
fn settings_say_how_long_to_go_on() {
    let goes_on = |failure: &Failure, attempt, max_attempts, retry_broken| {
        let patience = RetryPatience { max_attempts: Some(max_attempts), retry_broken };
        wait(failure, FailureCase { patience, ..case(failure, attempt) }).is_some()
    };
    let (connect, busy) = (Failure::new(FailureKind::Connect, "refused"), status(503, "busy", None));
    assert!(goes_on(&busy, 1, 2, true) && !goes_on(&busy, 2, 2, true) && goes_on(&busy, 1, 2, false));
    assert!(!goes_on(&busy, 1, 1, true));
    assert!(goes_on(&connect, 1, 2, true) && !goes_on(&connect, 2, 2, true) && !goes_on(&connect, 1, 9, false));
    // Kinds of failures in turn do not add up.
    let mut tries = AttemptCounts::default();
    [&connect, &busy, &connect, &busy].into_iter().for_each(|it| tries.count(it));
    let patience = RetryPatience { max_attempts: Some(4), ..RetryPatience::default() };
    assert_eq!(wait(&busy, FailureCase { tries, patience, ..case(&busy, 1) }), None);
    assert!(wait(&connect, FailureCase { tries, ..case(&busy, 1) }).is_some());
}

#[test]
fn another_model() {
    let spent = status(429, "Quota exceeded, limit: 0", None);
    let busy = status(503, "Overloaded", None);
    let later = status(429, "Later", Some(9_000_000));
    let no_room = status(429, "You have exhausted your capacity on this model.", None);
    let missing = status(404, "Gone", None);
    let auth = Failure::new(FailureKind::Auth, "No key");
    let empty = Failure::new(FailureKind::Invalid, "Empty");
    let validation = Details {
        words: vec!["VALIDATION_REQUIRED".to_owned()],
        link: Some("https://a.b/c".to_owned()),
        ..Details::default()
    };
    let validation = Failure { details: validation.into(), ..status(403, "Verify", None) };
    let mut table = String::new();
    for (name, failure) in [
        ("spent", &spent),
        ("busy", &busy),
        ("later", &later),
        ("no room", &no_room),
        ("missing", &missing),
        ("auth", &auth),
        ("empty", &empty),
        ("validation", &validation),
    ] {
        for (who, next, silent, interactive) in [
            ("alone", None, false, true),
            ("alone, headless", None, false, false),
            ("asks", Some("n"), false, true),
            ("headless", Some("n"), false, false),
            ("silent", Some("n"), true, true),
        ] {
            let policy = FallbackPolicy::always(if silent { FallbackAction::Silent } else { FallbackAction::Ask });
            let case = |n| FailureCase { fallback: next, policy, interactive, ..case(failure, n) };
            let n = (1..20).find(|n| wait(failure, case(*n)).is_none()).unwrap();
            let once = FailureCase { single_attempt: true, ..case(1) };
            let once = if wait(failure, once).is_none() { "" } else { " (more than once)" };
            let said = match on_failure(failure, case(n)) {
                FailureAction::RetryAt { .. } => unreachable!(),
                FailureAction::LeaveOut { .. } => unreachable!(),
                FailureAction::Shorten { why } => format!("shorten: {why}"),
                FailureAction::FallBack { model, why } => format!("fall back to {model}: {why}"),
                FailureAction::Ask { why, model, until } => format!("ask {model:?} {until:?}: {why}"),
                FailureAction::Renew { .. } => unreachable!(),
                FailureAction::GiveUp { why } => format!("give up: {why}"),
            };
            table += &format!("{name}, {who}: after {n}{once} {said}\n");
        }
    }
    expect_test::expect_file!["tests.txt"].assert_eq(&table);
}

#[test]
fn failure_sets_the_model_outage() {
    let out = |cause, until_ms| Some(Outage { cause, until_ms });
    for (failure, expected) in [
        (status(429, "limit: 0", None), out(OutageCause::Quota, None)),
        (status(429, "Later", Some(400_000)), out(OutageCause::Limit, Some(1_400_000))),
        (status(429, "Daily quota", Some(400_000)), out(OutageCause::Quota, Some(1_400_000))),
        (status(429, "capacity exceeded", None), out(OutageCause::Capacity, Some(1_030_000))),
        (status(404, "", None), out(OutageCause::Missing, None)),
        (status(429, "", None), None),
        (status(503, "", None), None),
        (Failure::new(FailureKind::Connect, ""), None),
    ] {
        assert_eq!(outage(&failure, NOW.unix_ms), expected, "{failure:?}");
    }
}

#[test]
fn words() {
    let text = |failure: &Failure, attempt, shown| match on_failure(
        failure,
        FailureCase { answer_shown: shown, ..case(failure, attempt) },
    ) {
        FailureAction::RetryAt { why, .. }
        | FailureAction::LeaveOut { why }
        | FailureAction::Shorten { why }
        | FailureAction::GiveUp { why }
        | FailureAction::Renew { why }
        | FailureAction::FallBack { why, .. }
        | FailureAction::Ask { why, .. } => why,
    };
    let table = [
        (
            text(&status(429, "Resource exhausted", Some(1_000)), 1, false),
            "The rate limit of m is reached: Resource exhausted. Trying again in 1 s (attempt 2 of 10).",
        ),
        (
            text(&status(503, "Overloaded.", Some(34_070)), 2, false),
            "The server of m has a problem (503): Overloaded. Trying again in 35 s (attempt 3 of 10).",
        ),
        (
            text(&status(429, "Quota", Some(9_000_000)), 1, false),
            "The quota of m is used up: Quota. The server asks to wait 2.5 h.",
        ),
        (text(&Failure::new(FailureKind::Auth, "API key not valid."), 1, false), "API key not valid."),
        (
            text(&Failure::new(FailureKind::Connect, "refused"), 4, false),
            "refused. Gave up after 4 attempts; try again later.",
        ),
        (
            text(&Failure { retry_after_ms: Some(0), ..Failure::new(FailureKind::Stream, "It broke.") }, 1, true),
            "m: It broke. What was shown of the answer does not count; it begins anew. Trying again in 0 s (attempt 2 of 4).",
        ),
    ];
    for (got, expected) in table {
        assert_eq!(got, expected);
    }
}

/// What is too long is asked for once more with less, where that may help and the user wants attempts at all.
#[test]
fn too_long() {
    let long = status(400, "prompt is too long: 9000 tokens > 8000 maximum", None);
    let large = status(413, "Request Entity Too Large", None);
    let said = |failure: &Failure, n, max_attempts| {
        let patience = RetryPatience { max_attempts: Some(max_attempts), ..RetryPatience::default() };
        on_failure(failure, FailureCase { fallback: Some("n"), patience, ..case(failure, n) })
    };
    let why =
        "m: prompt is too long: 9000 tokens > 8000 maximum. The conversation is shortened, and it is asked again.";
    assert_eq!(said(&long, 1, 10), FailureAction::Shorten { why: why.to_owned() });
    assert_eq!(said(&large, 1, 10).as_str(), "shorten");
    for (failure, n, most) in [(&long, 2, 10), (&long, 1, 1), (&large, 2, 10)] {
        assert_eq!(said(failure, n, most).as_str(), "give up", "{failure:?}");
    }
    let policy = FallbackPolicy { actions: [Some(FallbackAction::Silent); 4], ..FallbackPolicy::default() };
    let after = on_failure(&long, FailureCase { fallback: Some("n"), policy, ..case(&long, 2) });
    assert_eq!(after.as_str(), "fall back", "then it is as the user says of failures that nobody knows");
}

/// Each kind has its own answer, and its own mark.
#[test]
fn policies_by_kind() {
    let (spent, busy) =
        (status(429, "You exceeded your current quota: limit: 0", None), status(503, "overloaded", None));
    let refused = status(400, "bad", None);
    let mut policy = FallbackPolicy { max_attempts: Some(1), ..FallbackPolicy::always(FallbackAction::Ask) };
    policy.actions[PolicyKind::Transient as usize] = Some(FallbackAction::Silent);
    let said = |failure: &Failure, policy: FallbackPolicy| {
        on_failure(failure, FailureCase { fallback: Some("n"), policy, ..case(failure, 1) }).as_str()
    };
    assert_eq!([said(&spent, policy), said(&busy, policy), said(&refused, policy)], ["ask", "fall back", "give up"]);
    policy.actions = [Some(FallbackAction::Silent), Some(FallbackAction::Ask), None, Some(FallbackAction::Silent)];
    assert_eq!([said(&spent, policy), said(&busy, policy), said(&refused, policy)], ["fall back", "ask", "fall back"]);
    let headless = FailureCase { fallback: Some("n"), policy, interactive: false, ..case(&busy, 10) };
    assert_eq!(on_failure(&busy, headless).as_str(), "give up");

    let terminal = FallbackPolicy { transitions: [Some(OutageTransition::Terminal); 4], ..policy };
    let sticky = FallbackPolicy { transitions: [Some(OutageTransition::StickyRetry); 4], ..policy };
    let until = |it: Option<Outage>| it.map(|it| (it.cause, it.until_ms));
    assert_eq!(until(outage_by_policy(&spent, 5, policy)), Some((OutageCause::Quota, None)));
    assert_eq!([outage_by_policy(&spent, 5, sticky), outage_by_policy(&busy, 5, policy)], [None, None]);
    assert_eq!(until(outage_by_policy(&busy, 5, terminal)), Some((OutageCause::Capacity, Some(30_005))));
    assert_eq!(until(outage_by_policy(&spent, 5, terminal)), Some((OutageCause::Quota, None)));
}
