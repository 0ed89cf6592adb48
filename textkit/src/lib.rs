// SPDX-License-Identifier: Apache-2.0
//! Tokenizers, chat templates and output constraints behind a small C ABI.
//!
//! `abi` holds what every exported function shares: slices in, owned buffers out, error codes, and
//! the guard that keeps panics on this side. The other modules are one part of the ABI each; the
//! headers in `include/` are the contract.

pub mod abi;
mod charsmap;
pub mod constraint;
pub mod gguf;
mod gguf_models;
mod gguf_pre;
mod gguf_scores;
mod graph;
mod large_stack;
pub mod pipeline;
pub mod schema;
pub mod stored;
pub mod template;
pub mod tokenizer;
mod tokenizer_abi;
pub mod tokenizer_decode;
mod tokenizer_stage;
