//! A plot of times: a lane for each kind of work, spans in them, and marks across. Idle times are cut short.

use super::{
    axis::TimeAxis,
    escape::{Text, put},
    figure::{LEFT, WIDTH, begin_bar, place, write_figure},
};

const LANE: f64 = 18.0;
const BAR: f64 = 13.0;
const TOP: f64 = 16.0;
/// Spans that are nearer to each other are drawn as one: a long session has more of them than there is room for.
const MIN_GAP: f64 = 0.5;
/// A span is seen, however short it was.
const MIN_BAR: f64 = 1.0;
/// Labels of marks stand so far apart.
const MIN_LABEL: f64 = 18.0;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct StripSpan {
    pub lane: usize,
    pub from: u64,
    pub to: u64,
    pub title: String,
}

/// A line across the lanes, with a link to what it marks.
#[derive(Clone, Debug)]
pub struct StripMark {
    pub at: u64,
    pub label: String,
    pub link: String,
}

#[derive(Clone, Debug)]
pub struct StripPlot<'a> {
    pub title: &'a str,
    /// Names of the lanes, from the top, with the numbers of their colours.
    pub lanes: &'a [(&'a str, usize)],
    pub spans: Vec<StripSpan>,
    pub marks: Vec<StripMark>,
}

/// A span as it is drawn.
struct DrawnSpan<'a> {
    from: f64,
    to: f64,
    title: &'a str,
    /// It stands for so many more.
    n_more: usize,
}

impl StripPlot<'_> {
    /// A figure; nothing where nothing took any time.
    pub fn write(&self, out: &mut String) {
        let busy: Vec<(u64, u64)> = self.spans.iter().map(|it| (it.from, it.to)).collect();
        if busy.iter().all(|(from, to)| from >= to) {
            return;
        }
        let axis = TimeAxis::new(busy);
        let x = |at: u64| LEFT + axis.place_of(at) * (WIDTH - LEFT);
        let height = TOP + LANE * self.lanes.len() as f64;
        write_figure(self.title, "", height, out, |out| {
            self.write_marks(x, height, out);
            self.write_lanes(x, out);
        });
    }

    fn write_lanes(&self, x: impl Fn(u64) -> f64 + Copy, out: &mut String) {
        for (lane, (name, color)) in self.lanes.iter().enumerate() {
            let y = TOP + LANE * lane as f64;
            put(out, format_args!("<text x=\"0\" y=\"{}\">{}</text>\n", place(y + BAR - 2.0), Text(name)));
            for it in self.drawn(lane, x) {
                begin_bar(*color, it.from, y, (it.to - it.from).max(MIN_BAR), out);
                put(out, format_args!("height=\"{BAR}\"><title>{}", Text(it.title)));
                if it.n_more > 0 {
                    put(out, format_args!(", and {} more", it.n_more));
                }
                out.push_str("</title></rect>\n");
            }
        }
    }

    fn write_marks(&self, x: impl Fn(u64) -> f64, height: f64, out: &mut String) {
        let mut last = f64::NEG_INFINITY;
        for mark in &self.marks {
            let at = x(mark.at);
            if at - last < MIN_LABEL {
                continue;
            }
            last = at;
            let at = place(at);
            put(out, format_args!("<line x1=\"{at}\" x2=\"{at}\" y1=\"{}\" y2=\"{height}\"/>", TOP - 3.0));
            put(out, format_args!("<a href=\"{}\"><text x=\"{at}\" y=\"10\">", Text(&mark.link)));
            put(out, format_args!("{}</text></a>\n", Text(&mark.label)));
        }
    }

    /// The spans of a lane, in order; neighbours are one.
    fn drawn(&self, lane: usize, x: impl Fn(u64) -> f64) -> Vec<DrawnSpan<'_>> {
        let mut spans: Vec<&StripSpan> = self.spans.iter().filter(|it| it.lane == lane).collect();
        spans.sort_by_key(|it| (it.from, it.to));
        let mut res: Vec<DrawnSpan<'_>> = Vec::new();
        for it in spans {
            let (from, to) = (x(it.from), x(it.to));
            match res.last_mut() {
                Some(last) if from - last.to.max(last.from + MIN_BAR) < MIN_GAP => {
                    last.to = last.to.max(to);
                    last.n_more += 1;
                }
                _ => res.push(DrawnSpan { from, to, title: &it.title, n_more: 0 }),
            }
        }
        res
    }
}
