//! Functions of doubles for which the standard library differs from the C library: inverse
//! hyperbolic functions and degrees. The results are bit-identical to those of C. Source of the
//! formulas: fdlibm (Sun Microsystems, 1993).

use std::f64::consts::{LN_2, PI};

const LARGE: f64 = 268_435_456.0;
const TINY: f64 = 1.0 / LARGE;

pub(super) fn asinh(x: f64) -> f64 {
    let size = x.abs();
    if !x.is_finite() || size < TINY {
        return x;
    }
    let result = if size > LARGE {
        size.ln() + LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((size * size + 1.0).sqrt() + size)).ln()
    } else {
        let square = size * size;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(x)
}

pub(super) fn acosh(x: f64) -> f64 {
    if x > LARGE {
        x.ln() + LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let above = x - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

pub(super) fn atanh(x: f64) -> f64 {
    let size = x.abs();
    if size < TINY {
        return x;
    }
    let twice = size + size;
    let result = if size < 0.5 {
        0.5 * (twice + twice * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * (twice / (1.0 - size)).ln_1p()
    };
    result.copysign(x)
}

pub(super) fn to_radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

pub(super) fn to_degrees(radians: f64) -> f64 {
    radians * (180.0 / PI)
}
