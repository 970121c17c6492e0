//! Points of the plane as keys: the bits of x and y, interleaved (Morton order), as in MongoDB's
//! geohash.
//!
//! ```text
//! x = x31 x30 x29 …   y = y31 y30 y29 …   →   x31 y31 x30 y30 x29 y29 …
//! ```
//!
//! Every square of every level of the quadtree is one contiguous range of keys. If the grid has
//! fewer than 32 bits, the lower bits are zero.

use std::collections::VecDeque;

use crate::key_range::{KeyRange, merge};
use crate::plane::{Overlap, Rectangle};
use crate::{Coordinates, Error};

/// MongoDB's error code for a point outside the grid.
const POINT_OUTSIDE_GRID: i32 = 13027;
/// Upper bound of the squares of a query. More squares exclude more non-matching points but need
/// more seeks.
const QUERY_SQUARES_MAX: usize = 20;
const BITS: u32 = 32;

/// The grid of a `2d` index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Bits of each coordinate, 1 to 32.
    pub bits: u32,
    /// The smallest value of x and y, inclusive.
    pub min: f64,
    /// The greatest value of x and y, inclusive.
    pub max: f64,
}

impl Default for Grid {
    fn default() -> Grid {
        Grid {
            bits: 26,
            min: -180.0,
            max: 180.0,
        }
    }
}

/// A square of the quadtree: its column and row among the squares of its level.
#[derive(Clone, Copy)]
struct Square {
    x: u32,
    y: u32,
    level: u32,
}

impl Grid {
    /// Returns the key of a point. Fails with code 13027 if the point is outside the grid.
    pub fn key(&self, position: Coordinates) -> Result<u64, Error> {
        let inside = self.min..=self.max;
        if !(inside.contains(&position.x) && inside.contains(&position.y)) {
            return Err(Error::new(
                POINT_OUTSIDE_GRID,
                format!(
                    "point not in interval of [ {}, {} ] :: caused by :: [{}, {}]",
                    self.min, self.max, position.x, position.y
                ),
            ));
        }
        let square = self.square(position, self.bits);
        Ok(square.range().first)
    }

    /// Returns the square at `level` that contains the point. A point outside the grid yields the
    /// nearest square.
    fn square(&self, position: Coordinates, level: u32) -> Square {
        let scale = 2f64.powi(BITS as i32) / (self.max - self.min);
        let place = |value: f64| {
            // The conversion saturates, so the greatest value falls into the last square.
            let place = ((value - self.min) * scale) as u32;
            place.checked_shr(BITS - level).unwrap_or(0)
        };
        Square {
            x: place(position.x),
            y: place(position.y),
            level,
        }
    }

    /// Returns the key range of the square at `level` that contains the point.
    pub(crate) fn square_range(&self, position: Coordinates, level: u32) -> KeyRange {
        self.square(position, level).range()
    }

    /// The side of a square at `level`, in the unit of the coordinates.
    pub(crate) fn width(&self, level: u32) -> f64 {
        (self.max - self.min) / 2f64.powi(level as i32)
    }

    /// Returns the key ranges of the squares that overlap a shape.
    ///
    /// Splits squares that overlap partly, breadth first, until the bound on the squares or the
    /// finest level is reached.
    pub(crate) fn ranges(&self, overlap: impl Fn(&Rectangle) -> Overlap) -> Vec<KeyRange> {
        let mut found = Vec::new();
        let all = Square {
            x: 0,
            y: 0,
            level: 0,
        };
        let mut open = VecDeque::from([all]);
        while let Some(square) = open.pop_front() {
            let is_full = found.len() + open.len() + 4 > QUERY_SQUARES_MAX;
            if is_full || square.level >= self.bits {
                found.push(square.range());
                continue;
            }
            for quarter in square.quarters() {
                match overlap(&self.rectangle(quarter)) {
                    Overlap::Disjoint => {}
                    Overlap::Contained => found.push(quarter.range()),
                    Overlap::Partial => open.push_back(quarter),
                }
            }
        }
        merge(found)
    }

    /// The bounds of a square, widened slightly so that rounding cannot exclude a point on its
    /// edge.
    fn rectangle(&self, square: Square) -> Rectangle {
        let width = self.width(square.level);
        let margin = (self.max - self.min) * 1e-12;
        let low = |place: u32| self.min + f64::from(place) * width - margin;
        let corner = |x, y| Coordinates { x, y };
        let (x, y) = (low(square.x), low(square.y));
        Rectangle {
            low: corner(x, y),
            high: corner(x + width + 2.0 * margin, y + width + 2.0 * margin),
        }
    }
}

impl Square {
    fn quarters(self) -> [Square; 4] {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(right, up)| Square {
            x: self.x * 2 + right,
            y: self.y * 2 + up,
            level: self.level + 1,
        })
    }

    fn range(self) -> KeyRange {
        let left = BITS - self.level;
        let high = |place: u32| u64::from(place.checked_shl(left).unwrap_or(0));
        let first = spread_bits(high(self.x)) << 1 | spread_bits(high(self.y));
        let within = match left {
            BITS => u64::MAX,
            left => (1 << (2 * left)) - 1,
        };
        KeyRange::new(first, first | within)
    }
}

/// Inserts a zero bit before each of the low 32 bits.
fn spread_bits(bits: u64) -> u64 {
    [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ]
    .into_iter()
    .fold(bits, |bits, (shift, mask)| (bits | bits << shift) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_interleaved_x_first() {
        let check = |bits, x: f64, y: f64, expected: u64| {
            let grid = Grid {
                bits,
                ..Grid::default()
            };
            assert_eq!(
                grid.key(Coordinates { x, y }),
                Ok(expected),
                "{bits} {x} {y}"
            );
        };
        check(1, 1.0, -1.0, 2 << 62);
        check(1, -1.0, 1.0, 1 << 62);
        check(2, 0.0, 0.0, 3 << 62);
        check(32, 180.0, 180.0, u64::MAX);
        check(32, -180.0, -180.0, 0);
        check(26, 180.0, 180.0, u64::MAX << 12);
        assert_eq!(
            Grid::default()
                .key(Coordinates { x: 181.0, y: 0.0 })
                .map_err(|error| error.code),
            Err(POINT_OUTSIDE_GRID)
        );
    }
}
