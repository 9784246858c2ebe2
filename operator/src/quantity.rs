//! Quantities such as `2`, `500m` and `1Gi`, as numbers. Pure. Follows `resource.Quantity` of apimachinery: decimal and
//! binary suffixes, decimal exponents, nothing finer than a billionth, rounded up.

/// Billionths in one.
const ONE: i128 = 1_000_000_000;

/// A quantity in billionths; none where it is no quantity or larger than any that Kubernetes takes.
#[must_use]
pub fn billionths(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let end = unsigned
        .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
        .unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, exponent) = scale(suffix)?;
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let size = shifted(mantissa.checked_mul(times)?, exponent)?;
    Some(if negative { -size } else { size })
}

/// Whether it asks for something. What cannot be read counts: the API server took it for a quantity.
#[must_use]
pub fn is_positive(text: &str) -> bool {
    billionths(text).is_none_or(|size| size > 0)
}

/// A factor in billionths, and a power of ten beside it.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let decimal = |exponent| Some((ONE, exponent));
    let binary = |bits: u32| Some((ONE.checked_shl(bits)?, 0));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    }
}

/// Times a power of ten, rounded up.
fn shifted(value: i128, exponent: i32) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return value.checked_mul(power?);
    }
    // A divisor beyond any number leaves less than a billionth, which is rounded up to one.
    let power = power.unwrap_or(i128::MAX);
    let rest = i128::from(value % power != 0);
    Some(value / power + rest)
}

#[cfg(test)]
mod tests;
