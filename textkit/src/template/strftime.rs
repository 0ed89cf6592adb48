// SPDX-License-Identifier: Apache-2.0
//! strftime in the C locale and UTC, with the glibc extensions that templates use.

use std::fmt::Write;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

struct Time {
    year: i64,
    month: i64, // 1-12
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64, // 0 = Sunday
    yearday: i64, // 0 = 1 January
    unix: i64,
}

/// Civil date from days since 1970-01-01 (H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", civil_from_days).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn split(unix: i64) -> Time {
    let days = unix.div_euclid(86_400);
    let rest = unix.rem_euclid(86_400);
    let (year, month, day) = civil(days);
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let yearday = BEFORE[(month - 1) as usize] + day - 1 + i64::from(month > 2 && is_leap(year));
    Time {
        year,
        month,
        day,
        hour: rest / 3600,
        minute: rest / 60 % 60,
        second: rest % 60,
        weekday: (days + 4).rem_euclid(7),
        yearday,
        unix,
    }
}

/// ISO 8601 year and week.
fn iso_week(t: &Time) -> (i64, i64) {
    let monday_based = (t.weekday + 6) % 7;
    let week = (t.yearday - monday_based + 10) / 7;
    let weeks_in = |year: i64| {
        let first = |y: i64| (y + y / 4 - y / 100 + y / 400).rem_euclid(7);
        if first(year) == 4 || first(year - 1) == 3 {
            53
        } else {
            52
        }
    };
    if week < 1 {
        (t.year - 1, weeks_in(t.year - 1))
    } else if week > weeks_in(t.year) {
        (t.year + 1, 1)
    } else {
        (t.year, week)
    }
}

pub fn strftime(format: &str, unix_seconds: i64) -> String {
    // Years beyond four digits are no use to a prompt; keep the arithmetic in range.
    let t = split(unix_seconds.clamp(-62_135_596_800, 253_402_300_799));
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let flag = chars.next_if(|c| matches!(c, '-' | '_' | '0' | '^' | '#'));
        let Some(code) = chars.next() else {
            out.push('%');
            out.extend(flag);
            break;
        };
        directive(&mut out, &t, flag, code);
    }
    out
}

fn directive(out: &mut String, t: &Time, flag: Option<char>, code: char) {
    let hour12 = if t.hour % 12 == 0 { 12 } else { t.hour % 12 };
    let month = MONTHS[(t.month - 1) as usize];
    let day = DAYS[t.weekday as usize];
    let number = |out: &mut String, value: i64, width: usize, fill: char| {
        let fill = match flag {
            Some('-') => None,
            Some('_') => Some(' '),
            Some('0') => Some('0'),
            _ => Some(fill),
        };
        let digits = value.to_string();
        for _ in digits.len()..width {
            out.extend(fill);
        }
        out.push_str(&digits);
    };
    let name = |out: &mut String, name: &str| match flag {
        Some('^') => out.push_str(&name.to_uppercase()),
        _ => out.push_str(name),
    };
    let nested = |out: &mut String, format: &str| out.push_str(&strftime(format, t.unix));
    match code {
        'Y' => number(out, t.year, 1, '0'),
        'y' => number(out, t.year.rem_euclid(100), 2, '0'),
        'C' => number(out, t.year.div_euclid(100), 2, '0'),
        'm' => number(out, t.month, 2, '0'),
        'd' => number(out, t.day, 2, '0'),
        'e' => number(out, t.day, 2, ' '),
        'H' => number(out, t.hour, 2, '0'),
        'k' => number(out, t.hour, 2, ' '),
        'I' => number(out, hour12, 2, '0'),
        'l' => number(out, hour12, 2, ' '),
        'M' => number(out, t.minute, 2, '0'),
        'S' => number(out, t.second, 2, '0'),
        'f' => out.push_str("000000"),
        'j' => number(out, t.yearday + 1, 3, '0'),
        'B' => name(out, month),
        'b' | 'h' => name(out, &month[..3]),
        'A' => name(out, day),
        'a' => name(out, &day[..3]),
        'p' if flag == Some('#') => out.push_str(if t.hour < 12 { "am" } else { "pm" }),
        'p' => out.push_str(if t.hour < 12 { "AM" } else { "PM" }),
        'P' => out.push_str(if t.hour < 12 { "am" } else { "pm" }),
        'u' => number(out, if t.weekday == 0 { 7 } else { t.weekday }, 1, '0'),
        'w' => number(out, t.weekday, 1, '0'),
        'U' => number(out, (t.yearday + 7 - t.weekday) / 7, 2, '0'),
        'W' => number(out, (t.yearday + 7 - (t.weekday + 6) % 7) / 7, 2, '0'),
        'V' => number(out, iso_week(t).1, 2, '0'),
        'G' => number(out, iso_week(t).0, 1, '0'),
        'g' => number(out, iso_week(t).0.rem_euclid(100), 2, '0'),
        's' => number(out, t.unix, 1, '0'),
        'D' | 'x' => nested(out, "%m/%d/%y"),
        'F' => nested(out, "%Y-%m-%d"),
        'T' | 'X' => nested(out, "%H:%M:%S"),
        'R' => nested(out, "%H:%M"),
        'r' => nested(out, "%I:%M:%S %p"),
        'c' => nested(out, "%a %b %e %H:%M:%S %Y"),
        // A naive time has no zone, so Python prints nothing.
        'z' | 'Z' => {}
        'n' => out.push('\n'),
        't' => out.push('\t'),
        '%' => out.push('%'),
        other => {
            let _ = write!(out, "%{}{other}", flag.map(String::from).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn dates_print_in_the_c_locale() {
        let now = 1_768_480_496; // 2026-01-15 12:34:56
        assert_eq!(
            strftime("%d %b %Y %H:%M:%S|%A|%j|%p|%U %W %V %G", now),
            "15 Jan 2026 12:34:56|Thursday|015|PM|02 02 03 2026"
        );
        assert_eq!(strftime("%-d %e %y%%", 951_782_400), "29 29 00%"); // 2000-02-29
        assert_eq!(strftime("%F %T %G-%V", 1_609_459_199), "2020-12-31 23:59:59 2020-53");
        assert_eq!(strftime("%G-%V", 1_609_459_200), "2020-53"); // 2021-01-01
        assert_eq!(strftime("100%", 0), "100%");
    }
}
