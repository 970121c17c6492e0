//! Fixed-point numbers of any precision: integers that count units of 2^-bits.
//!
//! Each function is accurate to a few units. Callers choose enough bits for 34 decimal digits.

use num_bigint::{BigInt, BigUint, Sign};
use windrow_document::Decimal128;
use windrow_document::decimal::DecimalParts;

/// The number of fraction bits. The unit is 2^-bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub bits: u32,
}

impl Scale {
    pub fn one(self) -> BigInt {
        BigInt::from(1) << self.bits
    }

    /// Converts a finite decimal, rounded towards zero to the unit. NaN and infinities become 0.
    pub fn to_fixed_point(self, number: Decimal128) -> BigInt {
        let DecimalParts::Finite {
            negative,
            coefficient,
            exponent,
        } = number.parts()
        else {
            return BigInt::ZERO;
        };
        let power = BigUint::from(10u32).pow(exponent.unsigned_abs());
        let scaled = BigUint::from(coefficient) << self.bits;
        let magnitude = if exponent < 0 {
            scaled / power
        } else {
            scaled * power
        };
        BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, magnitude)
    }

    pub fn multiply(self, one: &BigInt, other: &BigInt) -> BigInt {
        (one * other) >> self.bits
    }

    pub fn divide(self, one: &BigInt, other: &BigInt) -> BigInt {
        (one << self.bits) / other
    }

    pub fn square_root(self, number: &BigInt) -> BigInt {
        (number << self.bits).sqrt()
    }

    /// Sums a series until its terms vanish. `next` computes a term from the previous one and its
    /// number.
    fn series(self, first: BigInt, mut next: impl FnMut(&BigInt, u32) -> BigInt) -> BigInt {
        let (mut sum, mut term, mut count) = (first.clone(), first, 1);
        loop {
            term = next(&term, count);
            if term.bits() <= 1 {
                return sum;
            }
            sum += &term;
            count += 1;
        }
    }

    /// Computes atan(1/n) for a whole n.
    fn atan_inverse(self, n: u32) -> BigInt {
        let square = BigInt::from(n) * n;
        let (mut power, mut sum, mut count) = (self.one() / n, self.one() / n, 1u32);
        while power.bits() > 1 {
            power = -power / &square;
            count += 2;
            sum += &power / count;
        }
        sum
    }

    /// Computes π with Machin's formula.
    pub fn pi(self) -> BigInt {
        (self.atan_inverse(5) * 4 - self.atan_inverse(239)) << 2u32
    }

    pub fn ln2(self) -> BigInt {
        self.ln_near_one(&(self.one() << 1u32))
    }

    /// Computes e^x for a small x.
    pub fn exp(self, x: &BigInt) -> BigInt {
        const HALVINGS: u32 = 8;
        let small = x >> HALVINGS;
        let mut power = self.series(self.one(), |term, count| {
            self.multiply(term, &small) / count
        });
        for _ in 0..HALVINGS {
            power = self.multiply(&power, &power);
        }
        power
    }

    /// Computes ln x for x from about 0.5 to 2 as 2 atanh((x - 1) / (x + 1)).
    pub fn ln_near_one(self, x: &BigInt) -> BigInt {
        let (below, above) = (x - self.one(), x + self.one());
        self.atanh_series(&self.divide(&below, &above)) << 1u32
    }

    fn atanh_series(self, z: &BigInt) -> BigInt {
        let square = self.multiply(z, z);
        let (mut power, mut sum, mut count) = (z.clone(), z.clone(), 1u32);
        while power.bits() > 1 {
            power = self.multiply(&power, &square);
            count += 2;
            sum += &power / count;
        }
        sum
    }

    /// Computes ln x for x above 0. Near 1 the result is as accurate as x - 1.
    pub fn ln(self, x: &BigInt) -> BigInt {
        self.ln_scaled(x, 0)
    }

    /// Computes ln (x · 2^exponent). x is scaled to between 0.75 and 1.5 first.
    pub fn ln_scaled(self, x: &BigInt, exponent: i64) -> BigInt {
        let mut shift = x.bits() as i64 - 1 - i64::from(self.bits);
        if shifted(x, -shift) * 2 >= self.one() * 3 {
            shift += 1;
        }
        let near_one = self.ln_near_one(&shifted(x, -shift));
        match shift + exponent {
            0 => near_one,
            power => near_one + self.ln2() * power,
        }
    }

    /// Computes ln of a decimal above 0.
    pub fn ln_decimal(self, number: Decimal128) -> BigInt {
        let DecimalParts::Finite {
            coefficient,
            exponent,
            ..
        } = number.parts()
        else {
            return BigInt::ZERO;
        };
        let power = BigInt::from(10).pow(exponent.unsigned_abs());
        let coefficient = BigInt::from(coefficient);
        if exponent >= 0 {
            return self.ln_scaled(&(coefficient * power), i64::from(self.bits));
        }
        let room = u64::from(self.bits) + power.bits();
        let quotient = (coefficient << room) / power;
        self.ln_scaled(&quotient, i64::from(self.bits) - room as i64)
    }

    pub fn sin(self, x: &BigInt) -> BigInt {
        let square = self.multiply(x, x);
        self.series(x.clone(), |term, count| {
            -self.multiply(term, &square) / (2 * count) / (2 * count + 1)
        })
    }

    pub fn cos(self, x: &BigInt) -> BigInt {
        let square = self.multiply(x, x);
        self.series(self.one(), |term, count| {
            -self.multiply(term, &square) / (2 * count - 1) / (2 * count)
        })
    }

    /// Computes atan x. The angle is halved until the series converges quickly.
    pub fn atan(self, x: &BigInt) -> BigInt {
        const HALVINGS: u32 = 6;
        let mut small = x.clone();
        for _ in 0..HALVINGS {
            let root = self.square_root(&(self.one() + self.multiply(&small, &small)));
            small = self.divide(&small, &(self.one() + root));
        }
        let square = self.multiply(&small, &small);
        let (mut power, mut sum, mut count) = (small.clone(), small, 1u32);
        while power.bits() > 1 {
            power = -self.multiply(&power, &square);
            count += 2;
            sum += &power / count;
        }
        sum << HALVINGS
    }
}

/// Computes x · 2^places.
fn shifted(x: &BigInt, places: i64) -> BigInt {
    if places < 0 {
        x >> places.unsigned_abs()
    } else {
        x << places.unsigned_abs()
    }
}

/// Returns the decimal nearest to `mantissa` · 2^`exponent`. It is marked as inexact.
pub(super) fn to_decimal(mantissa: &BigInt, exponent: i64) -> Decimal128 {
    const DIGITS: i64 = 45;
    /// log10(2) in millionths.
    const LOG10_2: i64 = 301_030;
    let magnitude = mantissa.magnitude();
    let digits = (magnitude.bits() as i64 + exponent) * LOG10_2 / 1_000_000;
    let places = DIGITS - digits;
    let power = BigUint::from(10u32).pow(places.unsigned_abs() as u32);
    let (number, divisor) = if places >= 0 {
        (magnitude * power, BigUint::from(1u32))
    } else {
        (magnitude.clone(), power)
    };
    let shifted = if exponent >= 0 {
        (number << exponent.unsigned_abs()) / divisor
    } else {
        (number >> exponent.unsigned_abs()) / divisor
    };
    let negative = mantissa.sign() == Sign::Minus;
    let places = places.clamp(-20_000, 20_000) as i32;
    Decimal128::from_parts(negative, shifted, -places, true)
}
