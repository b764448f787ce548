//! The five tasks as calls of tools, and the small project that they are about.

use std::{fs, path::Path};

/// What the model wants done; each agent has its own names for it.
pub enum Action {
    Read(&'static str),
    List(&'static str),
    Grep(&'static str),
    Edit { path: &'static str, old: &'static str, new: &'static str },
    Shell(&'static str),
}

use Action::{Edit, Grep, List, Read, Shell};

pub const TASKS: &[(&str, &[Action])] = &[
    ("read", &[Read("README.md"), Read("src/cart.txt")]),
    (
        "edit",
        &[
            Read("src/cart.txt"),
            Edit { path: "src/cart.txt", old: "rule 7 of cart adds", new: "rule 7 of cart takes" },
            Edit { path: "src/cart.txt", old: "rule 9 of cart adds", new: "rule 9 of cart takes" },
        ],
    ),
    (
        "debug",
        &[
            Shell("sh check.sh"),
            Grep("rule 11 of"),
            Read("src/price.txt"),
            Edit { path: "src/price.txt", old: "rule 11 of price adds", new: "rule 11 of price takes" },
            Shell("sh check.sh"),
        ],
    ),
    (
        "refactor",
        &[
            Grep("rule 3 of"),
            Read("src/cart.txt"),
            Read("src/price.txt"),
            Read("src/stock.txt"),
            Edit { path: "src/cart.txt", old: "rule 3 of cart adds", new: "first rule of cart adds" },
            Edit { path: "src/price.txt", old: "rule 3 of price adds", new: "first rule of price adds" },
            Edit { path: "src/stock.txt", old: "rule 3 of stock adds", new: "first rule of stock adds" },
            Shell("sh check.sh"),
        ],
    ),
    (
        "explore",
        &[
            List("."),
            List("src"),
            Read("README.md"),
            Read("src/cart.txt"),
            Read("src/price.txt"),
            Grep("rule 2"),
            Shell("wc -l src/cart.txt src/price.txt"),
        ],
    ),
];

/// Lines of each file: about 8 kB.
const N_LINES: usize = 120;

pub fn write_project(to: &Path) {
    fs::create_dir(to.join("src")).unwrap();
    for name in ["cart", "price", "stock"] {
        let line = |n| format!("rule {n} of {name} adds what the one before it has left, and a tenth\n");
        fs::write(to.join(format!("src/{name}.txt")), (0..N_LINES).map(line).collect::<String>()).unwrap();
    }
    fs::write(
        to.join("README.md"),
        "# A shop\n\nIts rules are in src, a file for each part. `sh check.sh` checks them.\n",
    )
    .unwrap();
    fs::write(to.join("check.sh"), "grep -n 'rule 1[0-9]* of' src/*.txt\n").unwrap();
}
