// SPDX-License-Identifier: Apache-2.0
//! Tokenizers, chat templates and output constraints behind a small C ABI.
//!
//! `abi` holds what every exported function shares: slices in, owned buffers out, error codes, and
//! the guard that keeps panics on this side. The other modules are one part of the ABI each; the
//! headers in `include/` are the contract.

pub mod abi;
pub mod constraint;
pub mod template;
pub mod tokenizer;
