// SPDX-License-Identifier: Apache-2.0
//! Python's classes of characters where Rust's differ.

/// str.isspace(): Unicode white space and the four ASCII separators.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Where str.splitlines() cuts.
pub fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// First code points of the decimal digit runs (category Nd) outside ASCII.
const DECIMAL_ZEROS: [u32; 37] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
    0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0,
];

/// The value of a decimal digit of any script.
pub fn decimal(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let code = c as u32;
    let zero = DECIMAL_ZEROS.iter().copied().filter(|&zero| zero <= code).max()?;
    (code - zero < 10).then_some(code - zero)
}

/// str.isdigit(): decimal digits and digits in super- or subscript and circles.
pub fn is_digit(c: char) -> bool {
    decimal(c).is_some()
        || matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '①'..='⑨' | '⑴'..='⑼' | '⒈'..='⒐')
}

pub fn is_alpha(c: char) -> bool {
    c.is_alphabetic() && !c.is_numeric()
}

/// str.title() of a character: upper case, what it expands to beyond the first in lower case.
pub fn push_title(out: &mut String, c: char) {
    let mut upper = c.to_uppercase();
    out.extend(upper.next());
    for rest in upper {
        out.extend(rest.to_lowercase());
    }
}
