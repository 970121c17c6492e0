//! Decimal arithmetic. Results are computed exactly and rounded once, half to even, to 34 digits.

use num_bigint::BigUint;

use super::{DIGITS, Decimal128, DecimalParts, EXPONENT_MIN, Rounding, SIGN};

impl Decimal128 {
    /// The result of an operation with a NaN: a NaN of the same sign, without payload.
    fn quiet_nan(self) -> Decimal128 {
        Decimal128(self.0 & SIGN | Decimal128::NAN.0)
    }

    /// Returns the number with the opposite sign. NaN is returned unchanged.
    pub fn negate(self) -> Decimal128 {
        if self.is_nan() {
            self
        } else {
            Decimal128(self.0 ^ SIGN)
        }
    }

    /// Returns the number without its sign. NaN is returned unchanged.
    pub fn abs(self) -> Decimal128 {
        if self.is_nan() {
            self
        } else {
            Decimal128(self.0 & !SIGN)
        }
    }

    /// Returns the sum. Not an implementation of `std::ops::Add`, because the operator would
    /// suggest the rules of Rust's floats.
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, other: Decimal128) -> Decimal128 {
        use DecimalParts::{Finite, Infinite, NotANumber};
        match (self.parts(), other.parts()) {
            (NotANumber, _) => self.quiet_nan(),
            (_, NotANumber) => other.quiet_nan(),
            (Infinite { negative }, Infinite { negative: other }) if negative != other => {
                Decimal128::NAN
            }
            (Infinite { negative }, _) | (_, Infinite { negative }) => {
                Decimal128::infinite(negative)
            }
            (
                Finite {
                    negative,
                    coefficient,
                    exponent,
                },
                Finite {
                    negative: n,
                    coefficient: c,
                    exponent: e,
                },
            ) => add_finite(
                FiniteParts {
                    negative,
                    coefficient,
                    exponent,
                },
                FiniteParts {
                    negative: n,
                    coefficient: c,
                    exponent: e,
                },
            ),
        }
    }

    /// Returns the same number with zeros appended to its coefficient, up to 34 digits or the
    /// smallest exponent.
    pub fn to_full_precision(self) -> Decimal128 {
        let least_zero = Decimal128(0);
        self.add(least_zero)
    }

    /// Returns 10^exponent, with the coefficient that repeated multiplication or division of 1 by
    /// 10 results in.
    pub fn power_of_ten(exponent: i32) -> Decimal128 {
        let zeros = exponent.clamp(0, DIGITS as i32 - 1);
        Decimal128::from_parts(false, scaled(1, zeros), exponent - zeros, false)
    }

    /// Returns the decimal exponent of the first digit: 2 for 123, -1 for 0.1. Returns `None` for
    /// zero, infinities and NaN.
    pub fn magnitude(self) -> Option<i32> {
        match self.parts() {
            DecimalParts::Finite {
                coefficient,
                exponent,
                ..
            } => Some(coefficient.checked_ilog10()? as i32 + exponent),
            _ => None,
        }
    }

    /// Returns 2^exponent, rounded to 34 digits.
    pub fn power_of_two(exponent: i32) -> Decimal128 {
        let magnitude = exponent.unsigned_abs();
        if exponent < 0 {
            // 2^-n = 5^n · 10^-n
            let coefficient = BigUint::from(5u32).pow(magnitude);
            return Decimal128::from_parts(false, coefficient, exponent, false);
        }
        Decimal128::from_parts(false, BigUint::from(1u32) << magnitude, 0, false)
    }

    /// Returns the difference.
    pub fn subtract(self, other: Decimal128) -> Decimal128 {
        self.add(other.negate())
    }

    /// Returns the product.
    pub fn multiply(self, other: Decimal128) -> Decimal128 {
        use DecimalParts::{Finite, Infinite, NotANumber};
        let negative = self.is_negative() != other.is_negative();
        match (self.parts(), other.parts()) {
            (NotANumber, _) => self.quiet_nan(),
            (_, NotANumber) => other.quiet_nan(),
            (Infinite { .. }, _) if other.is_zero() => Decimal128::NAN,
            (_, Infinite { .. }) if self.is_zero() => Decimal128::NAN,
            (Infinite { .. }, _) | (_, Infinite { .. }) => Decimal128::infinite(negative),
            (
                Finite {
                    coefficient,
                    exponent,
                    ..
                },
                Finite {
                    coefficient: c,
                    exponent: e,
                    ..
                },
            ) => {
                let product = BigUint::from(coefficient) * BigUint::from(c);
                Decimal128::from_parts(negative, product, exponent + e, false)
            }
        }
    }

    /// Returns the quotient. Division by zero returns an infinity, 0/0 returns NaN.
    pub fn divide(self, other: Decimal128) -> Decimal128 {
        use DecimalParts::{Finite, Infinite, NotANumber};
        let negative = self.is_negative() != other.is_negative();
        match (self.parts(), other.parts()) {
            (NotANumber, _) => self.quiet_nan(),
            (_, NotANumber) => other.quiet_nan(),
            (Infinite { .. }, Infinite { .. }) => Decimal128::NAN,
            (Infinite { .. }, _) => Decimal128::infinite(negative),
            (_, Infinite { .. }) => Decimal128::pack(negative, 0, EXPONENT_MIN),
            (Finite { coefficient: 0, .. }, Finite { coefficient: 0, .. }) => Decimal128::NAN,
            (_, Finite { coefficient: 0, .. }) => Decimal128::infinite(negative),
            (
                Finite {
                    negative: n,
                    coefficient,
                    exponent,
                },
                Finite {
                    negative: m,
                    coefficient: c,
                    exponent: e,
                },
            ) => divide_finite(
                FiniteParts {
                    negative: n,
                    coefficient,
                    exponent,
                },
                FiniteParts {
                    negative: m,
                    coefficient: c,
                    exponent: e,
                },
            ),
        }
    }

    /// Returns the remainder of the division with a truncated quotient. It has the sign of the
    /// dividend.
    pub fn remainder(self, other: Decimal128) -> Decimal128 {
        use DecimalParts::{Finite, Infinite, NotANumber};
        match (self.parts(), other.parts()) {
            (NotANumber, _) => self.quiet_nan(),
            (_, NotANumber) => other.quiet_nan(),
            (Infinite { .. }, _) => Decimal128::NAN,
            (_, Infinite { .. }) => self,
            (_, Finite { coefficient: 0, .. }) => Decimal128::NAN,
            (
                Finite {
                    negative,
                    coefficient,
                    exponent,
                },
                Finite {
                    coefficient: c,
                    exponent: e,
                    ..
                },
            ) => {
                let low = exponent.min(e);
                let dividend = scaled(coefficient, exponent - low);
                let divisor = scaled(c, e - low);
                Decimal128::from_parts(negative, dividend % divisor, low, false)
            }
        }
    }

    /// Rounds to `places` digits after the decimal point. If `places` is negative, rounds to that
    /// many digits before the point.
    pub fn to_places(self, places: i32, rounding: Rounding) -> Decimal128 {
        let DecimalParts::Finite {
            negative,
            coefficient,
            exponent,
        } = self.parts()
        else {
            return self;
        };
        let drop = (-places).saturating_sub(exponent);
        if drop <= 0 {
            return self;
        }
        let unit = if drop > 40 {
            None
        } else {
            10u128.checked_pow(drop as u32)
        };
        let (mut whole, rest) = match unit {
            Some(unit) => (coefficient / unit, coefficient % unit),
            None => (0, coefficient),
        };
        let twice = unit.map_or(0, |unit| (rest * 2).cmp(&unit) as i8 + 2);
        let up = match rounding {
            Rounding::HalfEven => twice == 3 || twice == 2 && whole % 2 == 1,
            Rounding::Truncate => false,
            Rounding::Floor => negative && rest != 0,
            Rounding::Ceiling => !negative && rest != 0,
        };
        whole += u128::from(up);
        Decimal128::from_clamped(negative, whole, exponent.saturating_add(drop))
    }

    /// Returns the square root, or NaN if the number is negative.
    pub fn square_root(self) -> Decimal128 {
        let DecimalParts::Finite {
            negative,
            coefficient,
            exponent,
        } = self.parts()
        else {
            return if self.is_negative() {
                Decimal128::NAN
            } else {
                self
            };
        };
        if coefficient == 0 {
            return Decimal128::pack(negative, 0, exponent.div_euclid(2));
        }
        if negative {
            return Decimal128::NAN;
        }
        let shift = 72 + exponent.rem_euclid(2);
        let square = scaled(coefficient, shift);
        let root = square.sqrt();
        let inexact = &root * &root != square;
        let exponent_of_root = (exponent - shift) / 2;
        if inexact {
            return Decimal128::from_parts(false, root, exponent_of_root, true);
        }
        trim_zeros(false, root, exponent_of_root, exponent.div_euclid(2))
    }
}

fn scaled(coefficient: u128, places: i32) -> BigUint {
    BigUint::from(coefficient) * BigUint::from(10u32).pow(places.max(0) as u32)
}

/// The components of a finite decimal.
#[derive(Clone, Copy)]
struct FiniteParts {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

fn add_finite(left: FiniteParts, right: FiniteParts) -> Decimal128 {
    let (high, low) = if left.exponent >= right.exponent {
        (left, right)
    } else {
        (right, left)
    };
    let gap = high.exponent - low.exponent;
    if gap > 80 && high.coefficient != 0 {
        return add_distant(high, low);
    }
    let gap = if high.coefficient == 0 { 0 } else { gap };
    let (a, b) = (
        scaled(high.coefficient, gap),
        BigUint::from(low.coefficient),
    );
    let (negative, sum) = match (high.negative == low.negative, a.cmp(&b)) {
        (true, _) => (high.negative, a + b),
        (false, std::cmp::Ordering::Equal) => (false, BigUint::ZERO),
        (false, std::cmp::Ordering::Greater) => (high.negative, a - b),
        (false, std::cmp::Ordering::Less) => (low.negative, b - a),
    };
    Decimal128::from_parts(negative, sum, low.exponent, false)
}

/// Adds operands whose digits do not overlap. The smaller one only affects the rounding.
fn add_distant(high: FiniteParts, low: FiniteParts) -> Decimal128 {
    let FiniteParts {
        negative,
        coefficient,
        exponent,
    } = high;
    if low.coefficient == 0 {
        return Decimal128::from_parts(negative, scaled(coefficient, 33), exponent - 33, false);
    }
    let stretched = scaled(coefficient, 45);
    if negative == low.negative {
        return Decimal128::from_parts(negative, stretched, exponent - 45, true);
    }
    Decimal128::from_parts(negative, stretched - 1u32, exponent - 45, true)
}

fn divide_finite(dividend: FiniteParts, divisor: FiniteParts) -> Decimal128 {
    let negative = dividend.negative != divisor.negative;
    let ideal = dividend.exponent - divisor.exponent;
    let stretched = scaled(dividend.coefficient, 75);
    let divisor = BigUint::from(divisor.coefficient);
    let quotient = &stretched / &divisor;
    let inexact = &quotient * &divisor != stretched;
    if inexact {
        return Decimal128::from_parts(negative, quotient, ideal - 75, true);
    }
    trim_zeros(negative, quotient, ideal - 75, ideal)
}

/// Removes trailing zeros until the exponent is the ideal one of the operation.
fn trim_zeros(
    negative: bool,
    mut coefficient: BigUint,
    mut exponent: i32,
    ideal: i32,
) -> Decimal128 {
    while exponent < ideal && &coefficient % 10u32 == BigUint::ZERO {
        coefficient /= 10u32;
        exponent += 1;
        if coefficient == BigUint::ZERO {
            exponent = ideal;
        }
    }
    Decimal128::from_parts(negative, coefficient, exponent, false)
}
