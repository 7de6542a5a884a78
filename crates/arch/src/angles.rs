//! From a row's position to the angles by which its heads are turned: the same for all backends.

use crate::features::RopeScaling;
use crate::graph::WeightId;
use crate::op::Rope;

/// The angles of one way to rotate. In float64, since an angle is a large number of which only the
/// remainder counts.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeAngles {
    /// Per token, for each pair.
    steps: Vec<f64>,
    /// What the rotated values are multiplied with.
    length: f64,
}

impl RopeAngles {
    /// For sessions of so long a context. `vector` gives the values of a weight of the graph.
    pub fn new<'a>(
        rope: &Rope,
        ctx_len: usize,
        vector: impl FnOnce(WeightId) -> &'a [f32],
    ) -> Self {
        let factors = match rope.scaling {
            RopeScaling::LongRope {
                trained_context, ..
            } if ctx_len > trained_context => rope.long_factors,
            _ => rope.factors,
        };
        let factors = factors.map(vector);
        let step = |pair: usize| {
            let power = -2.0 * pair as f64 / rope.n_rot as f64;
            let factor = factors.map_or(1.0, |factors| f64::from(factors[pair]));
            f64::from(rope.base).powf(power) / factor * stretch(rope, pair)
        };
        Self {
            steps: (0..rope.n_rot / 2).map(step).collect(),
            length: rope.scaling.length(),
        }
    }

    /// Pairs of a head that are turned.
    pub fn pairs(&self) -> usize {
        self.steps.len()
    }

    /// Cosine and sine of each pair at this position, times the length that rotated values get.
    pub fn turns(&self, position: usize) -> impl Iterator<Item = (f32, f32)> {
        self.times(self.length, position)
    }

    /// Cosine and sine alone. The turn at a + b is that at a and then this one at b.
    pub fn unit_turns(&self, position: usize) -> impl Iterator<Item = (f32, f32)> {
        self.times(1.0, position)
    }

    fn times(&self, length: f64, position: usize) -> impl Iterator<Item = (f32, f32)> {
        self.steps.iter().map(move |step| {
            let (sin, cos) = (position as f64 * step).sin_cos();
            ((cos * length) as f32, (sin * length) as f32)
        })
    }
}

/// What is left of a pair's step when the context is stretched.
fn stretch(rope: &Rope, pair: usize) -> f64 {
    match rope.scaling {
        RopeScaling::None | RopeScaling::LongRope { .. } => 1.0,
        RopeScaling::Linear { factor } => 1.0 / f64::from(factor),
        RopeScaling::Yarn {
            factor,
            trained_context,
        } => {
            let n_rot = rope.n_rot as f64;
            // The pair that turns so many times within the context that was trained for.
            let pair_of = |turns: f64| {
                let wave = trained_context as f64 / (turns * std::f64::consts::TAU);
                n_rot * wave.ln() / (2.0 * f64::from(rope.base).ln())
            };
            let first = pair_of(YARN_TURNS_FAST).floor().max(0.0);
            let last = pair_of(YARN_TURNS_SLOW).ceil().min(n_rot - 1.0);
            let share = (pair as f64 - first) / (last - first).max(YARN_RAMP_MIN);
            let stretched = share.clamp(0.0, 1.0);
            stretched / f64::from(factor) + (1.0 - stretched)
        }
    }
}

/// Pairs that turn more often keep their frequency (the settings of the YaRN paper, section 3.2).
const YARN_TURNS_FAST: f64 = 32.0;

/// Pairs that turn less often are stretched as a whole.
const YARN_TURNS_SLOW: f64 = 1.0;

/// The shortest ramp between the two, in pairs: none would divide by zero.
const YARN_RAMP_MIN: f64 = 0.001;
