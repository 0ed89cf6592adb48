// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::abi::Code;

fn render(source: &str, variables: &str) -> Result<String> {
    Template::parse(source)?.render(variables, 1_768_480_496)
}

#[test]
fn raise_exception_gives_its_own_words() {
    let error = render("{{ raise_exception('no ' ~ 1) }}", "{}").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::InvalidArgument, "no 1"));
}
