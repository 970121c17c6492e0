//! Random points and shapes.
#![allow(dead_code, reason = "each test uses a part")]

use windrow_document::{ArrayBuf, DocumentBuf, Value, doc};

/// A deterministic generator of pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.below(1 << 30) as f64 / f64::from(1 << 30))
    }

    pub fn position(&mut self) -> (f64, f64) {
        (self.between(-180.0, 180.0), self.between(-89.0, 89.0))
    }

    /// A random point at most `size` degrees from another, in each direction.
    pub fn beside(&mut self, (x, y): (f64, f64), size: f64) -> (f64, f64) {
        let x = x + self.between(-size, size);
        let y = y + self.between(-size, size);
        let x = if x > 180.0 { x - 360.0 } else { x };
        let x = if x < -180.0 { x + 360.0 } else { x };
        (x, y.clamp(-89.9, 89.9))
    }

    /// A star-shaped ring around a center. Its vertices are sorted by angle, so that it does not
    /// intersect itself.
    pub fn star(&mut self, center: (f64, f64), size: f64) -> Vec<(f64, f64)> {
        let corners = match self.below(10) {
            0 => 100 + self.below(100),
            _ => 3 + self.below(9),
        };
        let mut ring: Vec<(f64, f64)> = (0..corners)
            .map(|number| {
                let turn = std::f64::consts::TAU * number as f64 / corners as f64;
                let far = size * self.between(0.3, 1.0);
                let (x, y) = (center.0 + far * turn.cos(), center.1 + far * turn.sin());
                let x = if x > 180.0 { x - 360.0 } else { x };
                (if x < -180.0 { x + 360.0 } else { x }, y.clamp(-89.9, 89.9))
            })
            .collect();
        ring.push(ring[0]);
        ring
    }

    pub fn shape(&mut self, center: (f64, f64), size: f64) -> DocumentBuf {
        match self.below(4) {
            0 | 1 => point(self.beside(center, size)),
            2 => {
                let count = match self.below(10) {
                    0 => 80,
                    _ => 2 + self.below(4),
                };
                let line: Vec<_> = (0..count).map(|_| self.beside(center, size)).collect();
                geojson("LineString", list(&line).into())
            }
            _ => polygon(&[self.star(center, size)]),
        }
    }
}

pub fn pair((x, y): (f64, f64)) -> Value {
    let both: ArrayBuf = [Value::Double(x), Value::Double(y)].into_iter().collect();
    both.into()
}

pub fn list(positions: &[(f64, f64)]) -> ArrayBuf {
    positions.iter().copied().map(pair).collect()
}

pub fn geojson(name: &str, coordinates: Value) -> DocumentBuf {
    doc! { "type": name, "coordinates": coordinates }
}

pub fn point(position: (f64, f64)) -> DocumentBuf {
    geojson("Point", pair(position))
}

pub fn polygon(rings: &[Vec<(f64, f64)>]) -> DocumentBuf {
    let rings: ArrayBuf = rings.iter().map(|ring| Value::from(list(ring))).collect();
    geojson("Polygon", rings.into())
}
