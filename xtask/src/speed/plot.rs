//! A plot as an SVG: lines over an axis that doubles from mark to mark.

use std::fmt::Write;

/// One line.
pub(super) struct Line {
    pub(super) name: String,
    /// From left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// Of the picture, in its own units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Around the axes: left, top, right, bottom.
const MARGINS: [f64; 4] = [56.0, 16.0, 150.0, 44.0];

/// Colours that stay apart for eyes that see red and green alike (Okabe and Ito, 2008).
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#56b4e9", "#e69f00", "#009e73", "#cc79a7",
];

/// Steps of the vertical axis.
const STEPS: usize = 5;

/// Draws the lines.
pub(super) fn plot(horizontal: &str, vertical: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let least = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let greatest = all().map(|p| p.0).fold(0.0, f64::max);
    let top = rounded_up(all().map(|p| p.1).fold(0.0, f64::max));
    let [left, above, right, below] = MARGINS;
    let doublings = (greatest / least).log2().max(1.0);
    let x = |value: f64| left + (value / least).log2() / doublings * (WIDTH - left - right);
    let y = |value: f64| HEIGHT - below - value / top * (HEIGHT - above - below);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut add = |part: String| {
        text.push_str(&part);
        text.push('\n');
    };
    for step in 0..=STEPS {
        let value = top * step as f64 / STEPS as f64;
        let (at, end) = (y(value), WIDTH - right);
        add(format!(
            "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>",
            left - 6.0,
            at + 4.0
        ));
    }
    let mut mark = least;
    while mark <= greatest {
        let at = x(mark);
        add(format!(
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark:.0}</text>",
            HEIGHT - below + 16.0
        ));
        mark *= 2.0;
    }
    add(format!(
        "<text x=\"{left}\" y=\"{:.1}\">{horizontal}</text>\
         <text x=\"6\" y=\"{:.1}\">{vertical}</text>",
        HEIGHT - 8.0,
        above - 4.0
    ));
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let mut path = String::new();
        for (i, point) in line.points.iter().enumerate() {
            let letter = if i == 0 { 'M' } else { 'L' };
            // Writing into a string cannot fail.
            let _ = write!(path, "{letter}{:.1} {:.1}", x(point.0), y(point.1));
        }
        let end = line.points.last().map_or(0.0, |point| y(point.1));
        add(format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            WIDTH - right + 6.0,
            end + 4.0,
            line.name
        ));
    }
    text.push_str("</svg>\n");
    text
}

/// The next number that begins with 1, 2 or 5 and goes on with zeros.
fn rounded_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|bound| *bound >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, expected) in [(1.0, 1.0), (1.1, 2.0), (37.0, 50.0), (51.0, 100.0)] {
            assert!((rounded_up(value) - expected).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn every_line_is_drawn_within_the_picture() {
        let line = |name: &str, last: f64| Line {
            name: name.to_owned(),
            points: vec![(128.0, 1.0), (256.0, 2.0), (16_384.0, last)],
        };
        let picture = plot("x", "y", &[line("a", 9.0), line("b", 5.0)]);
        assert_eq!(picture.matches("<path d=\"M").count(), STEPS + 1 + 2);
        assert!(picture.contains(">16384<") && picture.contains(">b<"));
        let numbers = picture.split(['L', 'M']).skip(1);
        for pair in numbers.filter_map(|part| part.split_once(['"', 'L'])) {
            if let Some((x, y)) = pair.0.split_once(' ') {
                let (x, y): (f64, f64) = match (x.parse(), y.parse()) {
                    (Ok(x), Ok(y)) => (x, y),
                    _ => continue,
                };
                assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y));
            }
        }
    }
}
