//! Plots as golden files, and what no plot may hold.

use expect_test::expect_file;

use super::{
    axis::{TimeAxis, round_end},
    column_plot::{ColumnPlot, PlotColumn},
    figure::place,
    share_plot::{SharePlot, write_bar},
    strip_plot::{StripMark, StripPlot, StripSpan},
};

fn tokens(it: f64) -> String {
    format!("{it:.0} t")
}

fn columns(n: usize) -> String {
    let column = |nth: usize| PlotColumn { label: format!("<{nth}>"), values: vec![nth as f64, 1.0] };
    let series = [("new & old", 0), ("out", 2)];
    let plot = ColumnPlot {
        title: "Tokens \"a\" day",
        series: &series,
        columns: (0..n).map(column).collect(),
        in_words: tokens,
    };
    let mut out = String::new();
    plot.write(&mut out);
    out
}

#[test]
fn columns_stand_on_each_other() {
    expect_file!["golden/columns.svg"].assert_eq(&columns(4));
    assert_eq!(columns(0), "");
    let many = columns(1_000);
    assert!(many.matches("<g>").count() <= 160 && many.contains("<title>&lt;0&gt; – &lt;6&gt;: new &amp; old 21 t"));
}

#[test]
fn shares_make_a_whole() {
    let parts = |n: usize| (0..n).map(|it| (format!("<m{it}>"), (n - it) as f64)).collect();
    let write = |n: usize| {
        let mut out = String::new();
        SharePlot { title: "Cost by model", parts: parts(n), in_words: tokens }.write(&mut out);
        out
    };
    let mut out = write(3);
    write_bar(0.25, &mut out);
    expect_file!["golden/shares.svg"].assert_eq(&(out + "\n"));
    assert_eq!(write(0), "");
    assert_eq!(write(20).matches("<rect").count(), 8, "the last is all the others");
}

#[test]
fn times_stand_in_lanes() {
    let span = |lane, from, to, title: &str| StripSpan { lane, from, to, title: title.to_owned() };
    let day = 86_400_000;
    let spans = vec![
        span(0, 1_000, 3_000, "<model>"),
        span(1, 3_000, 3_001, "a tool"),
        span(1, 3_001, 3_002, "the next"),
        span(2, 4_000, 9_000, "write_file"),
        span(0, day, day + 2_000, "model"),
    ];
    let mark = |at, nth: u32| StripMark { at, label: nth.to_string(), link: format!("#turn-{nth}") };
    let lanes = [("model", 0), ("tools", 3), ("you", 2)];
    let marks = vec![mark(1_000, 1), mark(1_001, 2), mark(day, 3)];
    let plot = StripPlot { title: "Time", lanes: &lanes, spans, marks };
    let mut out = String::new();
    plot.write(&mut out);
    expect_file!["golden/strip.svg"].assert_eq(&out);
    let mut out = String::new();
    StripPlot { spans: vec![span(0, 5, 5, "x")], ..plot }.write(&mut out);
    assert_eq!(out, "");
}

/// A long session is no larger as a plot than there is room for.
#[test]
fn spans_beyond_sight_are_one() {
    let spans = (0..50_000).map(|it| StripSpan { lane: 0, from: it * 10, to: it * 10 + 5, title: "m".to_owned() });
    let plot = StripPlot { title: "t", lanes: &[("m", 0)], spans: spans.collect(), marks: Vec::new() };
    let mut out = String::new();
    plot.write(&mut out);
    assert!(out.matches("<rect").count() < 1_000 && out.contains("more</title>"), "{}", out.len());
}

#[test]
fn axes_end_in_round_numbers() {
    let ends = [0.0, 0.3, 1.0, 1.01, 23.0, 26.0, 700.0, f64::NAN].map(round_end);
    assert_eq!(ends, [1.0, 0.5, 1.0, 2.0, 25.0, 50.0, 1_000.0, 1.0]);
    assert_eq!([1.0, 1.25, -0.04].map(place), ["1", "1.3", "0"]);
    let axis = TimeAxis::new(vec![(200, 300), (0, 100), (50, 100), (1_000_000, 1_000_100)]);
    let places: Vec<String> = [0, 50, 100, 200, 1_000_100, u64::MAX].map(|it| place(axis.place_of(it) * 312.0)).into();
    assert_eq!(places, ["0", "50", "100", "106", "312", "312"]);
    assert_eq!(TimeAxis::default().place_of(7), 0.0);
}

/// Each tag is one of castor's, and closes what it should.
pub fn check_tags(page: &str) {
    let known = "html head title style body main nav ol li h1 h2 h3 h4 h5 h6 dl dt dd div p pre code details summary rect \
        small ul span table thead tbody tr th td section b em strong del blockquote a label i \
        svg figure figcaption text footer g script";
    let (known, void): (Vec<&str>, _) = (known.split_whitespace().collect(), ["meta", "img", "input", "br", "hr"]);
    let body = page.strip_prefix("<!doctype html>\n").unwrap();
    let mut open = Vec::new();
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("<{tag}"));
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.ends_with('/') {
            assert!(["rect", "line"].contains(&name), "<{tag}>");
        } else if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "<{tag}>");
        } else if !void.contains(&name) {
            assert!(known.contains(&name), "<{tag}>");
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for address in page.split("href=\"").skip(1) {
        assert!(["#turn-", "https://", "http://", "mailto:"].iter().any(|it| address.starts_with(it)), "{address}");
    }
}
